"""Changes to a session that are killed at every SQL statement.

`python -m tests.support.session_faults URL CASE` runs in a separate process, because no database
connection may be open when it forks.
"""

import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial

from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall._internal.workspace.importer import ImportConflict, ImportOptions
from skillhall._internal.workspace.templates import ApplyMode
from skillhall._internal.workspace.workspace import Workspace
from tests.support.actors import ACTOR
from tests.support.archives import ZipEntry, make_zip
from tests.support.databases import TIMESTAMP
from tests.support.statement_faults import MAX_STEPS, run_fault_module, run_until_killed
from tests.support.workspaces import import_upload, list_texts, make_workspace, skill_md

OLD = ["old a", "old b"]


def _run_import(workspace: Workspace, session: str) -> None:
    names = ("a", "c", "d")
    data = make_zip(
        *(ZipEntry(f"{name}/SKILL.md", skill_md(name, f"new {name}")) for name in names)
    )
    import_upload(
        workspace.importer,
        session,
        data,
        "s.zip",
        ImportOptions(on_conflict=ImportConflict.REPLACE),
    )


def _run_restore(workspace: Workspace, session: str) -> None:
    saved = next(s for s in workspace.snapshots.list(session) if s.name == "saved")
    workspace.snapshots.restore(session, saved.id)


def _run_apply(workspace: Workspace, session: str) -> None:
    workspace.templates.apply(session, "T", ApplyMode.REPLACE)


CASES: dict[str, tuple[Callable[[Workspace, str], None], list[str]]] = {
    "import": (_run_import, ["new a", "old b", "new c", "new d"]),
    "restore": (_run_restore, ["saved"]),
    "apply": (_run_apply, ["from template"]),
}


def run_session_faults(url: str, case: str) -> int:
    """Kill the change at every step, a statement or commit; return the number of steps."""
    return run_fault_module("tests.support.session_faults", url, case)


def _prepare(url: str) -> str:
    with closing(Database(url, TIMESTAMP)) as database:
        workspace = make_workspace(SqlWorkspaceStore(database, actor=ACTOR), "p")
        other = workspace.sessions.create("other").id
        workspace.blocks.add(other, "note", "from template")
        workspace.templates.save(other, "T")
        session = workspace.sessions.create("one").id
        first = workspace.blocks.add(session, "note", "saved")
        workspace.snapshots.save(session, "saved")
        workspace.blocks.delete(session, first.id, first.version)
        for name in ("a", "b"):
            import_upload(workspace.importer, session, skill_md(name, f"old {name}"), f"{name}.md")
        return session


def _read_state(url: str, session: str) -> tuple[list[str], int, int]:
    """Return the texts, the revision and the number of snapshots of the session."""
    with closing(Database(url, TIMESTAMP)) as database:
        workspace = make_workspace(SqlWorkspaceStore(database, actor=ACTOR))
        texts = list_texts(workspace, session)
        return (
            texts,
            workspace.sessions.find(session).revision,
            len(workspace.snapshots.list(session)),
        )


def _run_change(
    url: str, session: str, change: Callable[[Workspace, str], None], step: int
) -> None:
    database = Database(url, TIMESTAMP)
    change(make_workspace(SqlWorkspaceStore(database, actor=ACTOR), f"c{step}x"), session)


def _main(url: str, case: str) -> None:
    work, after = CASES[case]
    session = _prepare(url)
    before = _read_state(url, session)
    assert before[0] == OLD, before
    for step in range(1, MAX_STEPS):
        change = partial(_run_change, url, session, work, step)
        is_complete = run_until_killed(step, change)
        state = _read_state(url, session)
        if state[0] == after:
            assert state[1] == before[1] + 1, "the change was made more than once"
            sys.stdout.write(str(step - is_complete))
            return
        assert state == before, f"killed at {step}: {state}"
    raise AssertionError(f"more than {MAX_STEPS} statements")


if __name__ == "__main__":
    _main(*sys.argv[1:])
