"""Whatever breaks while skills are generated, each is whole, and the next run knows its own."""

import pytest

from tests.support.fault_injection import run_faults

CASES = ["FirstRun", "SecondRun", "AllRemoved"]


@pytest.mark.parametrize("case", CASES)
def test_a_process_killed_at_any_step_leaves_whole_skills_that_are_known_to_be_ours(
    case: str,
) -> None:
    assert run_faults("tests.support.generate_fault_cases", case, "kill") > 5


@pytest.mark.parametrize("case", CASES)
def test_a_disk_that_is_full_at_any_step_leaves_whole_skills_that_are_known_to_be_ours(
    case: str,
) -> None:
    assert run_faults("tests.support.generate_fault_cases", case, "full") > 5
