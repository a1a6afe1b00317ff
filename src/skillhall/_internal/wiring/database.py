"""Opens the database and the services on it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.trust.policy_loader import load_policies
from skillhall._internal.policy.access.actor import SYSTEM_ACTOR
from skillhall._internal.policy.trust.version_states import ReviewMode
from skillhall._internal.prompt_server.invalidation import RepositoryInvalidator
from skillhall._internal.prompt_server.uploads.database_uploads import DatabaseUploads
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE
from skillhall._internal.skill_store.database_store import DatabaseStore
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.mirror import SkillMirror
from skillhall._internal.skill_store.versions.recorded_folders import RecordedFolders
from skillhall._internal.skill_store.versions.reviewed_folder_store import (
    ReviewedFolderStore,
    end_reviews,
)
from skillhall._internal.skill_store.versions.skill_versions import SkillVersions, WorkingCopies
from skillhall._internal.storage.access_tokens import AccessTokens, NewToken, Token, TokenCache
from skillhall._internal.storage.accounts.oidc_provider import (
    OidcProvider,
)
from skillhall._internal.storage.accounts.passwords import verify_password
from skillhall._internal.storage.accounts.user_accounts import UserAccounts, UserCache
from skillhall._internal.storage.accounts.user_rows import SqlUserTable
from skillhall._internal.storage.audit.audit_query import AuditLog
from skillhall._internal.storage.audit.audit_sealer import parse_retention, seal_on_close
from skillhall._internal.storage.audit.file_audit import FileAudit
from skillhall._internal.storage.audit.server_audit import ServerAudit
from skillhall._internal.storage.credential_cache import UseRecorder
from skillhall._internal.storage.records import SessionBudgets, SignIn, SkillVersion
from skillhall._internal.storage.records import StoredUser as User
from skillhall._internal.storage.runtime_settings import (
    RuntimeSettings,
    SettingInEffect,
    parse_fixed,
)
from skillhall._internal.storage.server_revocations import RevocationCache, Revocations
from skillhall._internal.storage.sign_ins import NewSignIn, SignIns
from skillhall._internal.storage.sql.backup import recover_restore
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.events.event_feed import EventFeed
from skillhall._internal.storage.sql.events.event_rows import SqlOutbox
from skillhall._internal.storage.sql.events.event_signal import open_event_signal
from skillhall._internal.storage.sql.revocation_rows import SqlRevocationTable
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkillTable
from skillhall._internal.storage.sql.timeouts import parse_timeout
from skillhall._internal.storage.sql.token_rows import SqlSignInTable, SqlTokenTable
from skillhall._internal.storage.sql.upload_rows import SqlUploadTable
from skillhall._internal.storage.sql.version_rows import REVIEW_VARIABLE, SqlVersionTable
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall.errors import ConfigInvalid, DatabaseFull, DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle

__all__ = [
    "AccessTokens",
    "Accounts",
    "AuditLog",
    "DatabaseServices",
    "NewSignIn",
    "NewToken",
    "OidcProvider",
    "Revocations",
    "RuntimeSettings",
    "ServerAudit",
    "SettingInEffect",
    "SignIn",
    "SignIns",
    "SkillVersion",
    "Token",
    "User",
    "UserAccounts",
    "get_mirror_folder",
    "new_id",
    "open_access_tokens",
    "open_audit_log",
    "open_database",
    "open_database_services",
    "open_revocations",
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

    `uploads` is set only if the database is PostgreSQL, `mirror` also if the skills of the run
    directory are reviewed. `versions` is None if the database has those of another run directory.
    """

    database: Database
    event_feed: EventFeed
    token_cache: TokenCache
    sign_ins: SignIns
    users: UserCache
    use_recorder: UseRecorder
    invalidator: RepositoryInvalidator
    audit: ServerAudit
    revocations: RevocationCache
    runtime: RuntimeSettings
    mirror: SkillMirror | None = None
    skill_store: DatabaseStore | ReviewedFolderStore | FolderStore | None = None
    uploads: DatabaseUploads | None = None
    versions: SkillVersions | None = None

    def get_bin_retention(self) -> timedelta:
        """Return how long deleted skills can be restored."""
        return self.runtime.values.bin_retention

    def get_default_budgets(self) -> SessionBudgets:
        """Return the budgets of new sessions."""
        return self.runtime.values.budgets

    def open_accounts(self, settings: Settings) -> Accounts:
        """Return the operations on users and tokens. Raises: ConfigInvalid."""
        oidc = settings.server.oidc
        users = UserAccounts(SqlUserTable(self.database), issuer=oidc.issuer)
        accounts = Accounts(users, AccessTokens(SqlTokenTable(self.database)))
        if not oidc.issuer:
            return accounts
        provider = OidcProvider.from_settings(oidc, settings.allowed_networks, settings.proxies)
        return accounts._replace(provider=provider)

    def close(self) -> None:
        """Stop polling and close the database. Idempotent."""
        self.event_feed.close()
        self.token_cache.close()
        self.sign_ins.close()
        self.users.close()
        self.use_recorder.close()
        self.audit.close()
        self.revocations.close()
        self.runtime.close()
        if self.mirror is not None:
            self.mirror.close()
        self.database.close()


def open_database_services(settings: Settings) -> DatabaseServices:
    """Open the services on the database. Call `close` when done.

    Succeeds even if the database is temporarily unavailable.
    Raises: ConfigInvalid, DatabaseNewer.
    """
    mode = parse_review_mode(settings.server.review)
    parse_fixed(settings.server.fixed)  # an invalid variable fails before anything is open
    may_have_users = settings.database_url is not None or os.path.exists(_database_path(settings))  # noqa: PTH110
    database = open_database(settings, allow_unavailable=True)
    feed = EventFeed(SqlWorkspaceStore(database, SYSTEM_ACTOR), open_event_signal(database))
    recorder = UseRecorder()
    tokens = TokenCache(SqlTokenTable(database), recorder)
    sign_ins = SignIns(SqlSignInTable(database), recorder)
    invalidator = RepositoryInvalidator(SqlOutbox(database))
    feed.subscribe(tokens.handle_events)
    revocations = RevocationCache(SqlRevocationTable(database), settings.data_directory)
    feed.subscribe(sign_ins.handle_events)
    users = UserCache(SqlUserTable(database), recorder, may_have_users=may_have_users)
    feed.subscribe(users.handle_events)
    feed.subscribe(revocations.handle_events)
    runtime = RuntimeSettings(database, settings.server.fixed)
    feed.subscribe(runtime.handle_events)
    tokens.try_refresh()
    users.try_refresh()
    revocations.try_refresh()
    runtime.try_refresh()
    audit = ServerAudit(database, parse_retention(settings.server.audit_retention))
    feed.subscribe(audit.sealer.wake)
    services = DatabaseServices(
        database, feed, tokens, sign_ins, users, recorder, invalidator, audit, revocations, runtime
    )
    if not database.is_postgres:
        return _open_folders(services, settings)
    store = SqlSharedSkillTable(
        database,
        mode,
        may_end_reviews=bool(settings.server.review),
        bin_retention=services.get_bin_retention,
    )
    folder = get_mirror_folder(settings, database, mode)
    mirror = SkillMirror(store, folder)
    uploads = DatabaseUploads(SqlUploadTable(database), settings.cache_directory)
    feed.subscribe(mirror.handle_events)
    feed.subscribe(uploads.handle_events)
    skills = DatabaseStore(settings.working_directory, store, mirror)
    try:
        mirror.refresh()
    except ConfigInvalid:
        services.close()
        mirror.close()
        raise
    except Exception:  # noqa: BLE001 - the mirror tries again
        mirror.try_refresh()
    versions = _build_versions(settings, services, mode, skills)
    return services._replace(mirror=mirror, skill_store=skills, uploads=uploads, versions=versions)


def _open_folders(services: DatabaseServices, settings: Settings) -> DatabaseServices:
    """Add the store of a run directory, and the versions of its skills."""
    database, mode = services.database, parse_review_mode(settings.server.review)
    table = SqlVersionTable(database, services.get_bin_retention)
    if mode is ReviewMode.OFF:
        with suppress(DatabaseUnavailable, DatabaseFull):  # the next start tries again
            directory, may_end = settings.working_directory, bool(settings.server.review)
            end_reviews(table, directory, utc_now(), may_end=may_end)
        return _record_folders(services, settings, table)
    folders = _open_folder_store(settings, database)
    mirror = SkillMirror(
        SqlSharedSkillTable(database, mode, bin_retention=services.get_bin_retention),
        get_mirror_folder(settings, database, mode),
    )
    skills = ReviewedFolderStore(folders, table, mirror, mode)
    services.event_feed.subscribe(mirror.handle_events)
    with suppress(DatabaseUnavailable):
        mirror.refresh()
    versions = _build_versions(settings, services, mode, skills)
    return services._replace(mirror=mirror, skill_store=skills, versions=versions)


def _record_folders(
    services: DatabaseServices, settings: Settings, table: SqlVersionTable
) -> DatabaseServices:
    """Add the store of a run directory whose skills are not reviewed, and its versions."""
    folders = _open_folder_store(settings, services.database)
    recorded = RecordedFolders(folders, table)
    versions = None
    with suppress(DatabaseUnavailable, DatabaseFull):
        if recorded.owns_versions():
            versions = _build_versions(settings, services, ReviewMode.OFF, recorded)
            versions.list_bin()  # deletes what is too old
    return services._replace(skill_store=folders, versions=versions)


def _open_folder_store(settings: Settings, database: Database) -> FolderStore:
    """Open the skills of the run directory, whose changes the audit log records."""
    store = FolderStore(settings.working_directory, follow_links=settings.follow_links)
    name = f"skills-{sha256_hex(store.location.encode())[:16]}"
    store.file_audit = FileAudit(database, settings.data_directory, name)
    store.is_in_database = True  # its changes wait for the audit log
    store.sweep()  # leftovers of killed processes
    return store


def _build_versions(
    settings: Settings, services: DatabaseServices, mode: ReviewMode, working_copies: WorkingCopies
) -> SkillVersions:
    def find_signer(bundle: Bundle) -> str:
        if SIGNATURE_FILE not in bundle.files:
            return ""
        return load_policies(settings.policy_files).check_signature(bundle).format_signers()

    table = SqlVersionTable(services.database, services.get_bin_retention)
    return SkillVersions(table, mode, working_copies, find_signer)


def parse_review_mode(text: str) -> ReviewMode:
    """Parse the value of SKILLHALL_REVIEW. Raises: ConfigInvalid."""
    try:
        return ReviewMode(text.strip().lower() or ReviewMode.OFF)
    except ValueError:
        problem, hint = f"{text!r} is not a review mode", "use off, one or two"
        raise ConfigInvalid(REVIEW_VARIABLE, problem, hint) from None


def open_access_tokens(settings: Settings) -> tuple[AccessTokens, Callable[[], None]]:
    """Return the access tokens of the configured database, and a function to close it.

    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    database = open_database(settings)
    return AccessTokens(SqlTokenTable(database)), seal_on_close(database)


def open_user_accounts(settings: Settings) -> tuple[UserAccounts, Callable[[], None]]:
    """Return the users of the configured database, and a function to close it.

    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    database = open_database(settings)
    issuer = settings.server.oidc.issuer
    return UserAccounts(SqlUserTable(database), issuer=issuer), seal_on_close(database)


def open_audit_log(settings: Settings) -> tuple[AuditLog, Callable[[], None]]:
    """Return the audit log of the configured database, and a function to close it.

    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    database = open_database(settings)
    return AuditLog(database), database.close


def open_revocations(settings: Settings) -> tuple[Revocations, Callable[[], None]]:
    """Return the revocations of the configured database, and a function to close it.

    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    database = open_database(settings)
    return Revocations(SqlRevocationTable(database)), seal_on_close(database)


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


def get_mirror_folder(
    settings: Settings, database: Database, mode: ReviewMode = ReviewMode.OFF
) -> str:
    """Return the folder that mirrors the skills of a database."""
    name = sha256_hex(database.location.encode())[:16]
    if mode is not ReviewMode.OFF:  # a server without review must not write drafts into it
        name = f"{name}-approved"
    return os.path.join(settings.cache_directory, "shared", name)  # noqa: PTH118


def utc_now() -> str:
    """Return the current UTC time in ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id() -> str:
    """Return an unguessable id that sorts by creation time, to the millisecond."""
    return f"{time.time_ns() // 1_000_000:012x}{token_hex(10)}"
