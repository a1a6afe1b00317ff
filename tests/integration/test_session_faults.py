"""Processes killed during a change leave the session either unchanged or fully changed."""

from pathlib import Path

import pytest

from tests.support.databases import truncate_tables
from tests.support.session_faults import CASES, run_session_faults


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_session_is_consistent_after_kill_at_any_statement(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, case: str
) -> None:
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres")
        truncate_tables(url)
    else:
        url = f"sqlite:///{tmp_path}/killed.db"
    assert run_session_faults(url, case) > 10
