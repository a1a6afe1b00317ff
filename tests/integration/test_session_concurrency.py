"""Many processes at one session: nothing is lost, and everybody is told what became of it."""

from pathlib import Path

import pytest

from tests.support.databases import empty
from tests.support.session_concurrency import check, hammer, open_desk

PROCESSES, CHANGES = 4, 25


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_crowd_at_one_session_loses_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres")
        empty(url)
    else:
        url = f"sqlite:///{tmp_path}/crowd.db"
    database, desk = open_desk(url, "start")
    session = desk.sessions.create("crowd").id
    before = [desk.blocks.add(session, "note", str(number)) for number in range(6)]
    told = hammer(url, session, PROCESSES, CHANGES)
    assert told.refused > 0, "nobody met anybody"
    check(desk, session, told, before)
    database.close()
