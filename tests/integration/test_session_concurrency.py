"""Concurrent changes to one session by several processes."""

from pathlib import Path

import pytest

from tests.support.databases import truncate_tables
from tests.support.session_concurrency import check_nothing_lost, open_workspace, run_workers

PROCESSES, CHANGES = 4, 25


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_concurrent_changes_to_a_session_are_not_lost(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres")
        truncate_tables(url)
    else:
        url = f"sqlite:///{tmp_path}/crowd.db"
    database, workspace = open_workspace(url, "start")
    session = workspace.sessions.create("crowd").id
    before = [workspace.blocks.add(session, "note", str(number)) for number in range(6)]
    totals = run_workers(url, session, PROCESSES, CHANGES)
    assert totals.rejected > 0, "no changes conflicted"
    check_nothing_lost(workspace, session, totals, before)
    database.close()
