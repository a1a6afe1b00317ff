"""A fault at any step leaves the complete old skill or the complete new one."""

import pytest

from tests.support.fault_injection import run_faults

CASES = [
    *("Add", "Replace", "Update", "Remove", "Rollback"),
    *("AddWithoutLock", "LocalImport", "LocalReplace", "LocalDelete", "InstallSystemSkills"),
]


@pytest.mark.parametrize("case", CASES)
def test_process_killed_at_any_step_leaves_a_complete_skill(case: str) -> None:
    assert run_faults("tests.support.installer_fault_cases", case, "kill") > 5


@pytest.mark.parametrize("case", CASES)
def test_full_disk_at_any_step_leaves_a_complete_skill(case: str) -> None:
    assert run_faults("tests.support.installer_fault_cases", case, "full") > 5
