"""Many processes at one session: nothing is lost, and everybody is told what became of it."""

from pathlib import Path

import pytest

from tests.support.databases import truncate_tables
from tests.support.session_concurrency import check_nothing_lost, open_workspace, run_workers

PROCESSES, CHANGES = 4, 25


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_crowd_at_one_session_loses_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres")
        truncate_tables(url)
    else:
        url = f"sqlite:///{tmp_path}/crowd.db"
    database, desk = open_workspace(url, "start")
    session = desk.sessions.create("crowd").id
    before = [desk.blocks.add(session, "note", str(number)) for number in range(6)]
    told = run_workers(url, session, PROCESSES, CHANGES)
    assert told.rejected > 0, "nobody met anybody"
    check_nothing_lost(desk, session, told, before)
    database.close()
