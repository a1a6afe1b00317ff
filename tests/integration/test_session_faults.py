"""A process that is killed in the middle of a change leaves the session as before, or as after."""

from pathlib import Path

import pytest

from tests.support.databases import truncate_tables
from tests.support.session_faults import CASES, run_session_faults


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_killed_at_every_statement_a_session_stays_whole(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, case: str
) -> None:
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres")
        truncate_tables(url)
    else:
        url = f"sqlite:///{tmp_path}/killed.db"
    assert run_session_faults(url, case) > 10
