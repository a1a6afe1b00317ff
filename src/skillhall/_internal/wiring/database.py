"""Open the database, the services that share it, its tokens and its backups."""

from __future__ import annotations

import os
import time
from contextlib import closing
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.prompts.invalidation import Announcer
from skillhall._internal.prompts.uploads.database_uploads import SharedUploads
from skillhall._internal.skill.bundle import sha256_of
from skillhall._internal.skill_store.database_store import SharedSkills
from skillhall._internal.skill_store.mirror import Mirror
from skillhall._internal.storage.access_tokens import Token, TokenRing, Tokens
from skillhall._internal.storage.sql.backup import read_backup, write_backup
from skillhall._internal.storage.sql.engine import Database, file_url
from skillhall._internal.storage.sql.event_feed import EventFeed
from skillhall._internal.storage.sql.event_signal import open_watch
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkills
from skillhall._internal.storage.sql.token_rows import SqlOutbox, SqlTokens
from skillhall._internal.storage.sql.upload_rows import SqlUploads
from skillhall._internal.storage.sql.workspace_writes import SqlStore
from skillhall._internal.workspace.export import write_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.settings import Settings
    from skillhall._internal.storage.sql.backup import BackupReport

__all__ = [
    "Shared",
    "Token",
    "Tokens",
    "make_backup",
    "new_id",
    "open_database",
    "open_shared",
    "open_tokens",
    "restore_backup",
    "utc_now",
]
DATABASE = "skillhall.db"  # the file in the data folder


class Shared(NamedTuple):
    """What servers on one database have in common; skills and uploads only on PostgreSQL."""

    database: Database
    feed: EventFeed
    ring: TokenRing
    announcer: Announcer
    mirror: Mirror | None = None
    skills: SharedSkills | None = None
    uploads: SharedUploads | None = None

    def close(self) -> None:
        """Hear and look no more, and let go of the database; a second time does nothing."""
        self.feed.close()
        self.ring.close()
        if self.mirror is not None:
            self.mirror.close()
        self.database.close()


def open_shared(settings: Settings) -> Shared:
    """What this server shares with others; `close` it. Its database may be down for a while.

    Raises: ConfigInvalid, DatabaseNewer.
    """
    database = open_database(settings, patient=True)
    feed = EventFeed(SqlStore(database), open_watch(database))
    ring, announcer = TokenRing(SqlTokens(database)), Announcer(SqlOutbox(database))
    feed.subscribe(ring.hear)
    ring.catch_up()
    if not database.is_postgres:
        return Shared(database, feed, ring, announcer)
    store = SqlSharedSkills(database)
    mirror = Mirror(store, _mirror_folder(settings, database))
    uploads = SharedUploads(SqlUploads(database), settings.cache_directory)
    feed.subscribe(mirror.hear)
    feed.subscribe(uploads.hear)
    mirror.catch_up()
    skills = SharedSkills(settings.working_directory, store, mirror)
    return Shared(database, feed, ring, announcer, mirror, skills, uploads)


def open_tokens(settings: Settings) -> tuple[Tokens, Callable[[], None]]:
    """The tokens of the configured database, and what lets go of it.

    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    database = open_database(settings)
    return Tokens(SqlTokens(database)), database.close


def open_database(settings: Settings, *, patient: bool = False) -> Database:
    """The configured database, or the one in the data folder; `close` it.

    A patient one may be down for a while.
    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    own = file_url(os.path.join(settings.data_directory, DATABASE))  # noqa: PTH118
    url = own if settings.database_url is None else settings.database_url.reveal()
    return Database(url, utc_now(), patient=patient)


def _mirror_folder(settings: Settings, database: Database) -> str:

    name = sha256_of(database.place.encode())[:16]
    return os.path.join(settings.cache_directory, "shared", name)  # noqa: PTH118


def make_backup(settings: Settings, path: str, *, overwrite: bool) -> BackupReport:
    """Write everything in the database into a file.

    Raises: Conflict if the file is there, ConfigInvalid, DatabaseUnavailable, OSError.
    """
    with closing(open_database(settings)) as database:
        data, report = write_backup(database, utc_now())
    write_file(path, data, overwrite=overwrite)
    return report


def restore_backup(settings: Settings, data: bytes, *, overwrite: bool) -> BackupReport:
    """Put what a backup holds in place of what the database holds.

    Raises: BackupRejected, Conflict, ConfigInvalid, DatabaseUnavailable, DatabaseFull.
    """
    with closing(open_database(settings)) as database:
        return read_backup(database, data, utc_now(), overwrite=overwrite)


def utc_now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id() -> str:
    """An id that nobody can guess, and that sorts after those of earlier milliseconds."""
    return f"{time.time_ns() // 1_000_000:012x}{token_hex(10)}"
