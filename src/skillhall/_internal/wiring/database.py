"""Opens the database and the services on it."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.prompt_server.invalidation import RepositoryInvalidator
from skillhall._internal.prompt_server.uploads.database_uploads import DatabaseUploads
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill_store.database_store import DatabaseStore
from skillhall._internal.skill_store.mirror import SkillMirror
from skillhall._internal.storage.access_tokens import AccessTokens, NewToken, Token, TokenCache
from skillhall._internal.storage.accounts.oidc_provider import (
    OidcProvider,
    decode_attempt,
    encode_attempt,
)
from skillhall._internal.storage.accounts.passwords import verify_password
from skillhall._internal.storage.accounts.user_accounts import UserAccounts, UserCache
from skillhall._internal.storage.accounts.user_rows import SqlUserTable
from skillhall._internal.storage.credential_cache import UseRecorder
from skillhall._internal.storage.records import SignIn
from skillhall._internal.storage.records import StoredUser as User
from skillhall._internal.storage.sign_ins import NewSignIn, SignIns
from skillhall._internal.storage.sql.backup import recover_restore
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.event_feed import EventFeed
from skillhall._internal.storage.sql.event_rows import SqlOutbox
from skillhall._internal.storage.sql.event_signal import open_event_signal
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkillTable
from skillhall._internal.storage.sql.timeouts import parse_timeout
from skillhall._internal.storage.sql.token_rows import SqlSignInTable, SqlTokenTable
from skillhall._internal.storage.sql.upload_rows import SqlUploadTable
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.settings import Settings

__all__ = [
    "AccessTokens",
    "Accounts",
    "DatabaseServices",
    "NewSignIn",
    "NewToken",
    "SignIn",
    "SignIns",
    "Token",
    "User",
    "UserAccounts",
    "decode_attempt",
    "encode_attempt",
    "get_mirror_folder",
    "new_id",
    "open_access_tokens",
    "open_database",
    "open_database_services",
    "open_user_accounts",
    "utc_now",
]
DATABASE = "skillhall.db"  # in the data folder


class Accounts(NamedTuple):
    """Users and tokens of a server, and how passwords are compared."""

    users: UserAccounts
    tokens: AccessTokens
    verify_password: Callable[[str, str], bool] = verify_password
    provider: OidcProvider | None = None  # identity provider, if one is configured


class DatabaseServices(NamedTuple):
    """Services on the database, which several servers may share.

    `mirror`, `skill_store` and `uploads` are set only if the database is PostgreSQL.
    """

    database: Database
    event_feed: EventFeed
    token_cache: TokenCache
    sign_ins: SignIns
    users: UserCache
    use_recorder: UseRecorder
    invalidator: RepositoryInvalidator
    mirror: SkillMirror | None = None
    skill_store: DatabaseStore | None = None
    uploads: DatabaseUploads | None = None

    def open_accounts(self, settings: Settings) -> Accounts:
        """Return the operations on users and tokens. Raises: ConfigInvalid."""
        users = UserAccounts(SqlUserTable(self.database))
        accounts = Accounts(users, AccessTokens(SqlTokenTable(self.database)))
        oidc = settings.server.oidc
        if not oidc.issuer:
            return accounts
        provider = OidcProvider.from_settings(oidc, settings.allowed_networks)
        return accounts._replace(provider=provider)

    def close(self) -> None:
        """Stop polling and close the database. Idempotent."""
        self.event_feed.close()
        self.token_cache.close()
        self.sign_ins.close()
        self.users.close()
        self.use_recorder.close()
        if self.mirror is not None:
            self.mirror.close()
        self.database.close()


def open_database_services(settings: Settings) -> DatabaseServices:
    """Open the services on the database. Call `close` when done.

    Succeeds even if the database is temporarily unavailable.
    Raises: ConfigInvalid, DatabaseNewer.
    """
    may_have_users = settings.database_url is not None or os.path.exists(_database_path(settings))  # noqa: PTH110
    database = open_database(settings, allow_unavailable=True)
    feed = EventFeed(SqlWorkspaceStore(database), open_event_signal(database))
    recorder = UseRecorder()
    tokens = TokenCache(SqlTokenTable(database), recorder)
    sign_ins = SignIns(SqlSignInTable(database), recorder)
    invalidator = RepositoryInvalidator(SqlOutbox(database))
    feed.subscribe(tokens.handle_events)
    feed.subscribe(sign_ins.handle_events)
    users = UserCache(SqlUserTable(database), recorder, may_have_users=may_have_users)
    feed.subscribe(users.handle_events)
    tokens.try_refresh()
    users.try_refresh()
    services = DatabaseServices(database, feed, tokens, sign_ins, users, recorder, invalidator)
    if not database.is_postgres:
        return services
    store = SqlSharedSkillTable(database)
    mirror = SkillMirror(store, get_mirror_folder(settings, database))
    uploads = DatabaseUploads(SqlUploadTable(database), settings.cache_directory)
    feed.subscribe(mirror.handle_events)
    feed.subscribe(uploads.handle_events)
    mirror.try_refresh()
    skills = DatabaseStore(settings.working_directory, store, mirror)
    return services._replace(mirror=mirror, skill_store=skills, uploads=uploads)


def open_access_tokens(settings: Settings) -> tuple[AccessTokens, Callable[[], None]]:
    """Return the access tokens of the configured database, and a function to close it.

    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    database = open_database(settings)
    return AccessTokens(SqlTokenTable(database)), database.close


def open_user_accounts(settings: Settings) -> tuple[UserAccounts, Callable[[], None]]:
    """Return the users of the configured database, and a function to close it.

    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    database = open_database(settings)
    return UserAccounts(SqlUserTable(database)), database.close


def open_database(settings: Settings, *, allow_unavailable: bool = False) -> Database:
    """Open the configured database. Call `close` when done.

    Completes or undoes an interrupted restore first. The default is an SQLite file in the data
    folder. With `allow_unavailable`, a database that is down is opened on first use, unless there
    is such a restore.
    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    default_url = build_sqlite_url(_database_path(settings))
    url = default_url if settings.database_url is None else settings.database_url.reveal()
    timeouts = parse_timeout(settings.database_timeout)
    database = Database(url, utc_now(), allow_outage=allow_unavailable, timeouts=timeouts)
    try:
        recover_restore(database, settings.data_directory)
    except BaseException:
        database.close()
        raise
    return database


def _database_path(settings: Settings) -> str:
    return os.path.join(settings.data_directory, DATABASE)  # noqa: PTH118


def get_mirror_folder(settings: Settings, database: Database) -> str:
    """Return the folder that mirrors the skills of a database."""
    name = sha256_hex(database.location.encode())[:16]
    return os.path.join(settings.cache_directory, "shared", name)  # noqa: PTH118


def utc_now() -> str:
    """Return the current UTC time in ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id() -> str:
    """Return an unguessable id that sorts by creation time, to the millisecond."""
    return f"{time.time_ns() // 1_000_000:012x}{token_hex(10)}"
