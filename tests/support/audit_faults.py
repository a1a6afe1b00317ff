"""Changes that are killed at every SQL statement, or at every change of the disk.

The change must then be made and in the audit log, or neither. `python -m
tests.support.audit_faults CASE FOLDER URL` kills at every statement. It runs in a separate process,
because no database connection may be open when it forks.
"""

import errno
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from skillhall._internal.policy.access.actor import Actor, Via
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.prompt_server.followed_file import FollowedList
from skillhall._internal.prompt_server.prompt_model import FollowedRepository, Upload, UploadedFile
from skillhall._internal.prompt_server.uploads.database_uploads import DatabaseUploads
from skillhall._internal.prompt_server.uploads.folder_uploads import FolderUploads
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.lossless_editor import SkillText
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.undoable_changes import SkillStoreChanges
from skillhall._internal.storage.access_tokens import AccessTokens
from skillhall._internal.storage.accounts.oidc_provider import ProviderIdentity
from skillhall._internal.storage.accounts.user_accounts import UserAccounts
from skillhall._internal.storage.accounts.user_rows import SqlUserTable
from skillhall._internal.storage.audit.audit_chain import seal_rows, verify_chain
from skillhall._internal.storage.audit.audit_query import AuditFilter, AuditLog
from skillhall._internal.storage.audit.audit_sealer import seal_on_close
from skillhall._internal.storage.audit.file_audit import FileAudit
from skillhall._internal.storage.records import StoredUser, UserLink
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkillTable
from skillhall._internal.storage.sql.token_rows import SqlTokenTable
from skillhall._internal.storage.sql.upload_rows import SqlUploadTable
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall._internal.wiring.database import open_database
from skillhall.errors import DatabaseFull, DatabaseUnavailable, SourceUnknown
from tests.support.backup_faults import make_settings
from tests.support.bundles import build_single_bundle
from tests.support.databases import TIMESTAMP
from tests.support.skills import make_skill_md
from tests.support.statement_faults import MAX_STEPS, run_fault_module, run_until_killed
from tests.support.workspaces import make_workspace

ISSUER = "https://id.example"
ACTOR = Actor("dev1", "ci", Via.REST, "::1", "r1")
_OLD, _NEW = SkillText("s", "Old.", "old"), SkillText("s", "New.", "new")


class World(NamedTuple):
    """A server's database and folders."""

    settings: Settings
    database: Database

    def audit_files(self, name: str) -> FileAudit:
        return FileAudit(self.database, self.settings.data_directory, name)

    @property
    def skills(self) -> SkillStoreChanges:
        """The skills in folders."""
        store = FolderStore(self.settings.working_directory)
        store.file_audit = self.audit_files("skills")
        store.sweep()
        return SkillStoreChanges(store, self.settings.data_directory, ACTOR)

    @property
    def followed(self) -> FollowedList:
        """The followed repositories."""
        data = self.settings.data_directory
        return FollowedList(data, self.audit_files("followed"))

    @property
    def uploads(self) -> FolderUploads | DatabaseUploads:
        """The uploads, of which there may be two."""
        if self.database.is_postgres:
            table = SqlUploadTable(self.database)
            return DatabaseUploads(table, self.settings.cache_directory, 2)
        return FolderUploads(self.settings.data_directory, 2, self.audit_files("uploads"))


class Case(NamedTuple):
    """A change of something with a name, and whether it was made."""

    action: str
    prepare: Callable[[World, str], object]
    change: Callable[[World, str], object]
    is_changed: Callable[[World, str], bool]


def _nothing(_world: World, _name: str) -> None:
    pass


def _edit(world: World, name: str) -> None:
    bundle = world.skills.store.files(name)
    assert bundle is not None
    world.skills.edit(name, _NEW, bundle.digest())


def _import(world: World, name: str) -> None:
    files = {"SKILL.md": make_skill_md(name), "a/b.txt": b"x"}
    world.skills.import_([build_single_bundle(files, name)], replace=True)


def _undo(world: World, name: str) -> None:
    changes = world.skills._open_history().changes()  # noqa: SLF001 - pages have the id
    world.skills.undo(next(change.id for change in changes if name in change.entries))


def _read_body(world: World, name: str) -> bytes:
    bundle = world.skills.store.files(name)
    return b"" if bundle is None else bundle.files["SKILL.md"].read()


def _has_upload(world: World, name: str) -> bool:
    try:
        return bool(world.uploads.version(name))
    except SourceUnknown:
        return False


def _session_names(world: World) -> list[str]:
    workspace = make_workspace(SqlWorkspaceStore(world.database, actor=ACTOR))
    return [session.name for session in workspace.sessions.list()]


def _create_session(world: World, name: str) -> None:
    store = SqlWorkspaceStore(world.database, actor=ACTOR).acting_as(ACTOR)
    make_workspace(store, name).sessions.create(name)


def _put_shared(action: str, world: World, name: str) -> None:
    files = {"SKILL.md": (action.encode(), 0o644)}
    table = SqlSharedSkillTable(world.database)
    table.write(lambda write: write.put(name, files, "o"), TIMESTAMP, ACTOR, action)


def _delete_shared(world: World, name: str) -> None:
    table = SqlSharedSkillTable(world.database)
    table.write(lambda write: write.delete(name), TIMESTAMP, ACTOR, "skill.delete")


def _has_shared(world: World, name: str) -> bool:
    table = SqlSharedSkillTable(world.database)
    return table.read(lambda read: read.find(name)) is not None


def _create_token(world: World, name: str) -> None:
    AccessTokens(SqlTokenTable(world.database)).create(name, actor=ACTOR)


def _has_token(world: World, name: str) -> bool:
    return name in [token.label for token in SqlTokenTable(world.database).list()]


def _accounts(world: World) -> UserAccounts:
    return UserAccounts(SqlUserTable(world.database), issuer=ISSUER)


def _add_user(world: World, name: str) -> None:
    _accounts(world).add(name, Role.AUTHOR, ACTOR, subject=name)


def _remove_user(world: World, name: str) -> None:
    _accounts(world).remove(name, ACTOR)


def _invite(world: World, name: str) -> None:
    table, user = SqlUserTable(world.database), StoredUser(name, name, "", "author", TIMESTAMP)
    link = UserLink(sha256_hex(name.encode()), name, TIMESTAMP, "9999")
    table.add(user, ACTOR, link)
    AccessTokens(SqlTokenTable(world.database)).create(f"{name} token", name, actor=ACTOR)


def _connect(world: World, name: str) -> None:
    identity = ProviderIdentity(ISSUER, name, "", "", Role.REVIEWER, has_role_claim=True)
    _accounts(world).sign_in_identity(identity, ACTOR, code=name)


def _is_connected(world: World, name: str) -> bool:
    """Whether a user is connected with an identity; the link must be used up exactly then."""
    table = SqlUserTable(world.database)
    user, link = table.find(name), table.find_link(sha256_hex(name.encode()), TIMESTAMP)
    assert user is not None
    assert bool(user.subject) == (link is None) == (user.role == "reviewer")
    return bool(user.subject)


def _is_removed(world: World, name: str) -> bool:
    """Whether a user is removed; the token must be revoked exactly then."""
    is_removed = SqlUserTable(world.database).find(name) is None
    assert _has_token(world, f"{name} token") != is_removed
    return is_removed


CASES = {
    "user": Case(
        "user.add",
        _nothing,
        _add_user,
        lambda world, name: SqlUserTable(world.database).find(name) is not None,
    ),
    "identity": Case("user.identity", _invite, _connect, _is_connected),
    "user removal": Case("user.remove", _invite, _remove_user, _is_removed),
    "token": Case("token.create", _nothing, _create_token, _has_token),
    "shared skill": Case(
        "skill.import", _nothing, partial(_put_shared, "skill.import"), _has_shared
    ),
    "shared deletion": Case(
        "skill.delete",
        partial(_put_shared, "skill.add"),
        _delete_shared,
        lambda world, name: not _has_shared(world, name),
    ),
    "edit": Case(
        "skill.edit",
        lambda world, name: world.skills.add(name, _OLD),
        _edit,
        lambda world, name: b"new" in _read_body(world, name),
    ),
    "import": Case(
        "skill.import",
        lambda world, name: world.skills.add(name, _OLD),
        _import,
        lambda world, name: b"old" not in _read_body(world, name),
    ),
    "delete": Case(
        "skill.delete",
        lambda world, name: world.skills.add(name, _OLD),
        lambda world, name: world.skills.delete(name),
        lambda world, name: not _read_body(world, name),
    ),
    "undo": Case(
        "skill.undo",
        _import,
        _undo,
        lambda world, name: not _read_body(world, name),
    ),
    "upload": Case(
        "source.upload",
        _nothing,
        lambda world, name: world.uploads.ingest(
            Upload(name, [UploadedFile("p.md", "QQ==", None)], "h"), ACTOR
        ),
        _has_upload,
    ),
    "follow": Case(
        "source.follow",
        _nothing,
        lambda world, name: world.followed.add(FollowedRepository(name, "", ""), ACTOR),
        lambda world, name: name in [repo.repo for repo in world.followed.read()],
    ),
    "session": Case(
        "session.create",
        _nothing,
        _create_session,
        lambda world, name: name in _session_names(world),
    ),
}


def open_world(settings: Settings) -> World:
    return World(settings, open_database(settings))


def check(world: World, case: Case, name: str, is_complete: bool) -> None:
    """Check that the audit log has a row exactly if the change was made."""
    is_changed = case.is_changed(world, name)
    world.followed.recover()
    uploads = world.uploads
    if isinstance(uploads, FolderUploads):
        uploads.recover()
    rows = AuditLog(world.database).newest(AuditFilter(action=case.action), limit=1000)
    if case.action == "session.create":  # its subject is a new id
        assert len(rows) == len(_session_names(world))
    elif case.action == "source.upload":  # the rows of deleted uploads have the same action
        rows = [row for row in rows if row["subject"] == name and row["digest_after"]]
        assert len(rows) == is_changed, (rows, is_changed)
    else:
        rows = [row for row in rows if row["subject"] == name]
        assert len(rows) == is_changed, (rows, is_changed)
    actor = name if case.action == "user.identity" else "dev1"
    assert all((row["actor"], row["token"]) == (actor, "ci") for row in rows)
    assert is_changed or not is_complete
    world.database.write(seal_rows)
    assert not world.database.read(verify_chain).problem


class FolderEdit:
    """Edit of a skill in a folder, for `fault_injection`."""

    case, name = CASES["edit"], "pdf"

    def prepare(self, folder: Path) -> None:
        with closing((world := open_world(make_settings(folder))).database):
            self.case.prepare(world, self.name)

    def run(self, folder: Path) -> None:
        try:
            world = open_world(make_settings(folder))
            self.case.change(world, self.name)
        except (DatabaseUnavailable, DatabaseFull) as error:  # a full disk
            raise OSError(errno.ENOSPC, str(error)) from None

    def check(self, folder: Path) -> None:
        with closing((world := open_world(make_settings(folder))).database):
            check(world, self.case, self.name, is_complete=False)


class FolderImport(FolderEdit):
    """Import over a skill in a folder."""

    case = CASES["import"]


class FolderDeletion(FolderEdit):
    """Deletion of a skill in a folder."""

    case = CASES["delete"]


def run_audit_faults(case: str, folder: Path, url: str) -> int:
    """Kill a change at every statement and commit; return the number of steps."""
    return run_fault_module("tests.support.audit_faults", case, str(folder), url)


def _run(settings: Settings, case: Case, name: str) -> None:
    world = open_world(settings)
    close = seal_on_close(world.database)
    case.change(world, name)
    close()  # commands seal their rows


def _main(case_name: str, folder: str, url: str) -> None:
    case, settings = CASES[case_name], make_settings(Path(folder), url)
    for step in range(1, MAX_STEPS):
        name = f"n{step}"
        with closing((world := open_world(settings)).database):
            case.prepare(world, name)
        is_complete = run_until_killed(step, partial(_run, settings, case, name))
        with closing((world := open_world(settings)).database):
            check(world, case, name, is_complete)
        if is_complete:
            sys.stdout.write(str(step - 1))
            return
    raise AssertionError(f"more than {MAX_STEPS} statements")


if __name__ == "__main__":
    _main(*sys.argv[1:])
