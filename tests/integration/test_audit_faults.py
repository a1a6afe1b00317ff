"""A killed process leaves a change that is made and in the audit log, or neither."""

from pathlib import Path

import pytest

from tests.support.audit_faults import run_audit_faults
from tests.support.databases import truncate_tables
from tests.support.fault_injection import run_faults


@pytest.mark.parametrize(
    "case",
    [
        "edit",
        "delete",
        "undo",
        "upload",
        "follow",
        "session",
        "token",
        "user",
        "identity",
        "user removal",
    ],
)
def test_audit_log_and_files_agree_after_kill_at_any_statement(tmp_path: Path, case: str) -> None:
    assert run_audit_faults(case, tmp_path, "") > 4


@pytest.mark.parametrize(
    "case",
    ["shared skill", "shared deletion", "upload", "session", "token", "identity", "user removal"],
)
def test_audit_log_and_tables_agree_after_kill_at_any_statement(
    tmp_path: Path, postgres: str, case: str
) -> None:
    truncate_tables(postgres)
    assert run_audit_faults(case, tmp_path, postgres) > 4


@pytest.mark.parametrize(("case", "kind"), [("FolderEdit", "kill"), ("FolderImport", "full")])
def test_audit_log_and_folder_agree_after_a_fault_at_any_change_of_the_disk(
    case: str, kind: str
) -> None:
    assert run_faults("tests.support.audit_faults", case, kind) > 10
