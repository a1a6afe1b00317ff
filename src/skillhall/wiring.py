"""Settings in, ready objects out: the only place that knows every concrete class."""

from __future__ import annotations

import os
import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall.catalog.index import HeadIndex
from skillhall.catalog.load import load_roots
from skillhall.errors import UnknownProfile, without_credentials
from skillhall.policy.profiles import LENIENT, PROFILES
from skillhall.settings import Settings
from skillhall.sources.roots import Root, paths_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall.catalog.catalog import Catalog
    from skillhall.library.collection import Collection
    from skillhall.library.mirror import Mirror
    from skillhall.library.offering import FolderOffering
    from skillhall.library.shared_skills import SharedSkills
    from skillhall.library.tokens import TokenRing, Tokens
    from skillhall.policy.profiles import Profile
    from skillhall.prompts.announcing import Announcer
    from skillhall.prompts.counter import PromptCounter
    from skillhall.prompts.shared_uploads import SharedUploads
    from skillhall.skill.bundle import Bundle
    from skillhall.sources.directory import Progress
    from skillhall.sources.roots import Paths
    from skillhall.storage.database.backup import BackupReport
    from skillhall.storage.database.engine import Database
    from skillhall.storage.database.feed import EventFeed
    from skillhall.workspace.doors import Door
    from skillhall.workspace.intake import Provenance
    from skillhall.workspace.workspace import Workspace

DATABASE = "skillhall.db"  # the file in the data folder


def load_catalog(  # noqa: PLR0913 - each is an option of its own
    paths: Paths | None = None,
    profile: Profile | str = LENIENT,
    *,
    depth: int | None = None,
    bodies: bool = False,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Catalog:
    """The catalog of one folder or several, or of the profile's own folders if none are given.

    `depth` is how many levels below each folder are searched; the profile's own if not given. With
    `bodies`, each SKILL.md is read to its end, and skills whose body is not text are rejected.
    Raises: UnknownProfile, ValueError.
    """
    settings = settings or Settings.read()
    chosen = profile_named(profile) if isinstance(profile, str) else profile
    chosen = chosen.searching(depth)
    index = HeadIndex(settings.cache_directory) if settings.use_index else None
    roots = roots_for(paths, chosen, settings)
    return load_roots(roots, chosen, index, progress, bodies=bodies)


def open_counter(
    settings: Settings, *, watch: bool = True, shared: Shared | None = None
) -> PromptCounter:
    """The prompts that a server hands out; `close` it. With a watch, news are looked for meanwhile.

    Raises: ConfigInvalid.
    """
    # Imported here: no other command needs them.
    from dataclasses import replace  # noqa: PLC0415

    from skillhall.prompts.configured import read_supply  # noqa: PLC0415
    from skillhall.prompts.counter import PromptCounter  # noqa: PLC0415

    supply = read_supply(settings)
    if shared is None or shared.uploads is None:
        return PromptCounter(supply, watch=watch)
    announcer = shared.announcer
    # The list of what is followed is a file, which the other servers do not know.
    supply = replace(supply, uploads=shared.uploads, announce=announcer.tell, can_follow=False)
    counter = PromptCounter(supply, watch=watch)
    shared.feed.subscribe(lambda events: announcer.hear(events, counter.expire))
    return counter


def open_collection(
    settings: Settings, counter: PromptCounter, shared: Shared | None = None
) -> Collection:
    """The skills that a server shows: its own, and those of repositories that it reads."""
    # Imported here: no other command needs them.
    from skillhall.library.collection import Collection, Origin, Supplied  # noqa: PLC0415
    from skillhall.library.local_skills import LocalSkills  # noqa: PLC0415

    def repository() -> Supplied:
        stock = counter.skills()
        origins = {one.folder: Origin(one.source, one.commit) for one in stock.contents}
        return Supplied(stock.digest, stock.skills, origins)

    if shared is not None and shared.skills is not None:
        return Collection(shared.skills, settings, repository)
    local = LocalSkills(settings.working_directory, follow_links=settings.follow_links)
    local.sweep()
    return Collection(local, settings, repository)


def open_folders(paths: Sequence[str], profile: Profile, settings: Settings) -> FolderOffering:
    """The skills that the folders in `paths`, or the profile's own, have to offer."""
    # Imported here: no other command needs it.
    from skillhall.library.offering import FolderOffering  # noqa: PLC0415

    index = HeadIndex(settings.cache_directory) if settings.use_index else None
    return FolderOffering(roots_for(paths, profile, settings), profile, index)


def open_workspace(
    settings: Settings, *, serving: bool = False, shared: Shared | None = None
) -> Workspace:
    """The sessions of the configured database; `close` it.

    A server's sources are remote ones only, and it hears of what others change. What it shares
    with others brings the database along.
    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    # Imported here: no other command needs them.
    from skillhall.storage.database.feed import EventFeed  # noqa: PLC0415
    from skillhall.storage.database.watching import open_watch  # noqa: PLC0415
    from skillhall.storage.database.writing import SqlStore  # noqa: PLC0415
    from skillhall.workspace.desk import Desk  # noqa: PLC0415
    from skillhall.workspace.importing import Imports  # noqa: PLC0415
    from skillhall.workspace.workspace import Workspace  # noqa: PLC0415

    database = open_database(settings) if shared is None else shared.database
    desk = Desk(SqlStore(database), utc_now, new_id)
    source = partial(_open_source, settings, remote=serving)
    is_scanned = settings.server.folder_scan
    imports = Imports(desk, source, is_scanned, settings.working_directory)
    if shared is not None:
        return Workspace.of(desk, imports, shared.feed, shared.close)
    feed = EventFeed(desk.store, open_watch(database)) if serving else None
    return Workspace.of(desk, imports, feed, database.close)


def workspace_door(settings: Settings, shared: Shared | None = None) -> Door:
    """A server's way to its sessions: opened when they are asked for; `close` it."""
    from skillhall.workspace.doors import Door  # noqa: PLC0415 - no other command needs it

    return Door(partial(open_workspace, settings, serving=True, shared=shared))


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
    # Imported here: no other command needs them.
    from skillhall.library.mirror import Mirror  # noqa: PLC0415
    from skillhall.library.shared_skills import SharedSkills  # noqa: PLC0415
    from skillhall.library.tokens import TokenRing  # noqa: PLC0415
    from skillhall.prompts.announcing import Announcer  # noqa: PLC0415
    from skillhall.prompts.shared_uploads import SharedUploads  # noqa: PLC0415
    from skillhall.storage.database.feed import EventFeed  # noqa: PLC0415
    from skillhall.storage.database.shared import SqlSharedSkills  # noqa: PLC0415
    from skillhall.storage.database.tokens import SqlOutbox, SqlTokens  # noqa: PLC0415
    from skillhall.storage.database.uploads import SqlUploads  # noqa: PLC0415
    from skillhall.storage.database.watching import open_watch  # noqa: PLC0415
    from skillhall.storage.database.writing import SqlStore  # noqa: PLC0415

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
    from skillhall.library.tokens import Tokens  # noqa: PLC0415 - no other command needs them
    from skillhall.storage.database.tokens import SqlTokens  # noqa: PLC0415

    database = open_database(settings)
    return Tokens(SqlTokens(database)), database.close


def _mirror_folder(settings: Settings, database: Database) -> str:
    from skillhall.skill.bundle import sha256_of  # noqa: PLC0415 - no listing needs it

    name = sha256_of(database.place.encode())[:16]
    return os.path.join(settings.cache_directory, "shared", name)  # noqa: PTH118


def open_database(settings: Settings, *, patient: bool = False) -> Database:
    """The configured database, or the one in the data folder; `close` it.

    A patient one may be down for a while.
    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    from skillhall.storage.database.engine import Database, file_url  # noqa: PLC0415

    own = file_url(os.path.join(settings.data_directory, DATABASE))  # noqa: PTH118
    url = own if settings.database_url is None else settings.database_url.reveal()
    return Database(url, utc_now(), patient=patient)


def make_backup(settings: Settings, path: str, *, overwrite: bool) -> BackupReport:
    """Write everything in the database into a file.

    Raises: Conflict if the file is there, ConfigInvalid, DatabaseUnavailable, OSError.
    """
    from skillhall.storage.database.backup import write_backup  # noqa: PLC0415
    from skillhall.workspace.files import write_file  # noqa: PLC0415

    with closing(open_database(settings)) as database:
        data, report = write_backup(database, utc_now())
    write_file(path, data, overwrite=overwrite)
    return report


def restore_backup(settings: Settings, data: bytes, *, overwrite: bool) -> BackupReport:
    """Put what a backup holds in place of what the database holds.

    Raises: BackupRejected, Conflict, ConfigInvalid, DatabaseUnavailable, DatabaseFull.
    """
    from skillhall.storage.database.backup import read_backup  # noqa: PLC0415

    with closing(open_database(settings)) as database:
        return read_backup(database, data, utc_now(), overwrite=overwrite)


def utc_now() -> str:
    """The time in UTC, to the millisecond."""
    from datetime import UTC, datetime  # noqa: PLC0415 - no listing asks for the time

    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id() -> str:
    """An id that nobody can guess, and that sorts after those of earlier milliseconds."""
    from secrets import token_hex  # noqa: PLC0415 - no listing makes ids

    return f"{time.time_ns() // 1_000_000:012x}{token_hex(10)}"


def _open_source(
    settings: Settings, text: str, *, remote: bool
) -> tuple[Sequence[Bundle], Provenance]:
    """The bundles of a named source, and where that is. Raises: what opening it raises."""
    from skillhall.library.intake import open_client_source, open_source  # noqa: PLC0415
    from skillhall.sources.reference import GitHubRef, GitRef, UrlRef  # noqa: PLC0415
    from skillhall.workspace.intake import LOCAL, URL, Provenance  # noqa: PLC0415

    opened = open_client_source(text, settings) if remote else open_source(text, settings)
    is_remote = isinstance(opened.reference, GitHubRef | GitRef | UrlRef)
    origin = Provenance(URL if is_remote else LOCAL, without_credentials(text))
    return opened.bundles, origin


def index_directory(settings: Settings) -> str:
    """The folder of the warm index; always safe to remove."""
    return HeadIndex(settings.cache_directory).directory


def roots_for(paths: Paths | None, profile: Profile, settings: Settings) -> list[Root]:
    """The folders to scan, in order of precedence."""
    base, follow = settings.working_directory, settings.follow_links
    if given := paths_of(() if paths is None else paths):
        return [Root.of(path, base, follow_links=follow) for path in given]
    return [
        Root.of(path, base, source, expected=False, follow_links=follow)
        for path, source in profile.roots
    ]


def profile_named(name: str) -> Profile:
    """The profile of that name. Raises: UnknownProfile."""
    found = PROFILES.get(name)
    if found is None:
        raise UnknownProfile(name, tuple(PROFILES))
    return found
