"""Golden tests: the text for `input/` must equal `expected.txt`, byte for byte.

The absolute path of `input/` is written as `{root}`. `python3 dev.py golden` updates the files.
"""

import os
from pathlib import Path

import pytest

from skillhall._internal.agents.config.agent_config import read_config
from skillhall._internal.agents.instruction_skills import InstructionSkills
from skillhall._internal.api.compat.skills_module import discover_skills, skills_to_xml
from skillhall._internal.render.escape import escape
from skillhall._internal.settings import Settings

HERE = Path(__file__).parent


def cases(kind: str) -> pytest.MarkDecorator:
    folders = sorted(path.parent for path in (HERE / kind).glob("*/input"))
    return pytest.mark.parametrize("case", folders, ids=lambda folder: folder.name)


def compare(case: Path, text: str) -> None:
    portable = text.replace(escape(str(case / "input")), "{root}")
    expected = case / "expected.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        expected.write_bytes(portable.encode())
    assert portable == expected.read_bytes().decode()


@cases("instructions")
def test_instructions_equal_the_golden_file(case: Path, tmp_path: Path) -> None:
    folder = case / "input"
    (config,) = folder.glob("config.*")
    (agent,) = read_config(config).agents
    settings = Settings(working_directory=str(folder), cache_directory=str(tmp_path))
    compare(case, InstructionSkills(agent.skills, settings).text)


@cases("skills_module")
def test_skills_module_listing_equals_the_golden_file(case: Path) -> None:
    compare(case, skills_to_xml(discover_skills([".skills"], cwd=case / "input")))
