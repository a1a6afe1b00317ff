"""Restores that are killed at every SQL statement, or at every change of the disk.

`python -m tests.support.backup_faults FOLDER URL` kills at every statement. It runs in a separate
process, because no database connection may be open when it forks.
"""

import errno
import shutil
import sys
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, select

from skillhall._internal.backup.server_backup import make_backup, restore_backup
from skillhall._internal.policy.trust.trust_decision import ApprovalDecision
from skillhall._internal.settings import Secret, Settings
from skillhall._internal.storage.audit.audit_chain import seal_rows
from skillhall._internal.storage.audit.audit_query import AuditFilter, AuditLog
from skillhall._internal.storage.sql.audit_rows import allow_audit_deletion
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkillTable
from skillhall._internal.storage.sql.tables import METADATA, sessions, shared_skills
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall._internal.storage.trust_store import Approval, TrustStore
from skillhall._internal.wiring.database import open_database
from skillhall.errors import DatabaseUnavailable
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP
from tests.support.skills import make_skill, make_skill_md
from tests.support.statement_faults import MAX_STEPS, run_fault_module, run_until_killed
from tests.support.workspaces import make_workspace

State = tuple[dict[str, str], list[str], list[str], str, list[str]]
_FOLLOWED = '{"version": 1, "repositories": [{"repo": "https://git.example/%s"}]}'


def make_settings(folder: Path, url: str = "") -> Settings:
    """Return the settings of a server below a folder."""
    (folder / "run").mkdir(parents=True, exist_ok=True)
    return Settings(
        working_directory=str(folder / "run"),
        cache_directory=str(folder / "cache"),
        data_directory=str(folder / "data"),
        database_url=Secret(url) if url else None,
    )


def fill(settings: Settings, word: str) -> None:
    """Replace everything of a server by data with this word."""
    work, data = Path(settings.working_directory), Path(settings.data_directory)
    shutil.rmtree(work / ".agents", ignore_errors=True)
    for name in ("both", f"only-{word}"):
        make_skill(work / ".agents" / "skills", name, data=make_skill_md(name, body=word))
    with closing(open_database(settings)) as database:
        database.write(_delete_rows)
        make_workspace(SqlWorkspaceStore(database, actor=ACTOR), word).sessions.create(word)
        database.write(seal_rows)
        if database.is_postgres:
            files = {"SKILL.md": (word.encode(), 0o644)}
            table = SqlSharedSkillTable(database)
            table.write(
                lambda write: write.put(f"shared-{word}", files, "o"), TIMESTAMP, actor=ACTOR
            )
    data.mkdir(exist_ok=True)
    data.joinpath("followed.json").write_text(_FOLLOWED % word, encoding="utf-8")
    data.joinpath("trust.json").unlink(missing_ok=True)
    TrustStore(str(data)).add([Approval("sha256:1", word, "/project", ApprovalDecision.BLOCK)])


def _delete_rows(connection: Connection) -> None:
    with allow_audit_deletion(connection):
        for table in reversed(METADATA.sorted_tables):
            if table.name != "schema_migrations":
                connection.execute(table.delete())


def read_state(settings: Settings) -> State:
    """Return skills, sessions, shared skills, repositories and approvals, after recovery."""
    with closing(open_database(settings)) as database:
        is_restored = bool(AuditLog(database).newest(AuditFilter(action="backup.restore")))
        names = database.read(lambda c: [*c.execute(select(sessions.c.name)).scalars()])
        shared = database.read(lambda c: [*c.execute(select(shared_skills.c.id)).scalars()])
    skills = Path(settings.working_directory) / ".agents" / "skills"
    texts = {
        path.parent.name: path.read_text(encoding="utf-8").splitlines()[-1]
        for path in sorted(skills.glob("[!.]*/SKILL.md"))
    }
    leftovers = [
        *skills.glob(".skillhall-restore-*"),
        *Path(settings.data_directory).glob("*restore*"),
    ]
    assert not leftovers, leftovers
    assert is_restored == (names == ["new"]), "the audit log and the state differ"
    followed = Path(settings.data_directory, "followed.json").read_text(encoding="utf-8")
    approvals = [one.name for one in TrustStore(settings.data_directory).read().approvals]
    return texts, names, shared, followed, approvals


def expected(word: str, *, is_postgres: bool) -> State:
    """Return the state before the restore ("old"), or after it ("new")."""
    shared = [f"shared-{word}"] if is_postgres else []
    approvals = ["new", "old"] if word == "new" else ["old"]  # a restore loses none
    return {"both": word, f"only-{word}": word}, [word], shared, _FOLLOWED % word, approvals


class Restore:
    """Restore of a backup over other data, on SQLite."""

    def prepare(self, folder: Path) -> None:
        settings = make_settings(folder)
        fill(settings, "new")
        make_backup(settings, str(folder / "new.backup"))
        fill(settings, "old")

    def run(self, folder: Path) -> None:
        try:
            restore_backup(
                make_settings(folder), str(folder / "new.backup"), overwrite=True, actor=ACTOR
            )
        except DatabaseUnavailable as error:  # a full disk when the file is opened
            raise OSError(errno.ENOSPC, str(error)) from None

    def check(self, folder: Path) -> None:
        state = read_state(make_settings(folder))
        states = [expected(word, is_postgres=False) for word in ("old", "new")]
        assert state in states, state


def run_restore_faults(folder: Path, url: str) -> int:
    """Kill a restore at every statement and commit; return the number of steps."""
    return run_fault_module("tests.support.backup_faults", str(folder), url)


def restore(settings: Settings, backup: str) -> None:
    restore_backup(settings, backup, overwrite=True, actor=ACTOR)


def _main(folder: str, url: str) -> None:
    settings, backup = make_settings(Path(folder), url), str(Path(folder) / "new.backup")
    is_postgres = url.startswith("postgres")
    fill(settings, "new")
    make_backup(settings, backup)
    fill(settings, "old")
    old, new = (expected(word, is_postgres=is_postgres) for word in ("old", "new"))
    assert read_state(settings) == old
    for step in range(1, MAX_STEPS):
        is_complete = run_until_killed(step, lambda: restore(settings, backup))
        state = read_state(settings)
        assert state in (old, new), f"killed at {step}: {state}"
        if is_complete:
            assert state == new
            sys.stdout.write(str(step - 1))
            return
        if state == new:  # the next step starts with the old state, too
            fill(settings, "old")


if __name__ == "__main__":
    _main(*sys.argv[1:])
