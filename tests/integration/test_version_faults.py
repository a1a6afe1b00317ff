"""Processes killed during a review leave the versions either unchanged or fully changed."""

from pathlib import Path

import pytest

from tests.support.databases import truncate_tables
from tests.support.version_faults import CASES, run_version_faults


@pytest.mark.parametrize(
    ("kind", "case"), [*(("sqlite", case) for case in CASES), ("postgres", "yank")]
)
def test_version_and_audit_log_agree_after_kill_at_any_statement(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, case: str
) -> None:
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres")
        truncate_tables(url)
    else:
        url = f"sqlite:///{tmp_path}/killed.db"
    assert run_version_faults(url, case) > 10
