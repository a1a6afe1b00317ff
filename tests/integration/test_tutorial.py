"""The tutorial works as it is written."""

import sys
from pathlib import Path

import pytest

from tools.tutorial import Tutorial, check_output, read_steps


def test_tutorial_runs_from_the_first_command_to_the_last(tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    assert Tutorial(tmp_path, programs).run() == len([*read_steps()])


def test_tutorial_has_the_five_parts_of_a_first_hour() -> None:
    commands = " ".join(step.text for step in read_steps())
    parts = ("pip install", "skillhall init", "skillhall validate", "skillhall prompt")
    assert [part for part in (*parts, "skillhall serve") if part not in commands] == []


def test_output_that_differs_from_the_page_fails() -> None:
    check_output("list", "a 1 b\nx\ny\nend\n", "a … b\n…\nend\n")
    with pytest.raises(AssertionError, match="expected"):
        check_output("list", "other\n", "a …\n")
