"""Faults during generation: skills stay complete and are recognized by the next run."""

import pytest

from tests.support.fault_injection import run_faults

CASES = ["FirstRun", "SecondRun", "AllRemoved"]


@pytest.mark.parametrize("case", CASES)
def test_kill_at_any_step_leaves_complete_recognized_skills(
    case: str,
) -> None:
    assert run_faults("tests.support.generate_fault_cases", case, "kill") > 5


@pytest.mark.parametrize("case", CASES)
def test_full_disk_at_any_step_leaves_complete_recognized_skills(
    case: str,
) -> None:
    assert run_faults("tests.support.generate_fault_cases", case, "full") > 5
