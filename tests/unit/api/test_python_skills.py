import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillhall import AgentSkills, PythonSkills, Skills
from skillhall.errors import Conflict, SkillRejected, UnsafePath
from tests.support.skills import make_skill


def csv_totals() -> str:
    """Sums the columns of CSV files.

    Use when the user asks for totals.
    """
    return "# Steps\n\n1. Sum each column.\n"


def without_docstring() -> str:
    return "Do it."


def test_function_defines_a_skill_next_to_folders(tmp_path: Path) -> None:
    make_skill(tmp_path)
    python_skills = PythonSkills()
    python_skills.add(csv_totals, files={"data/example.csv": b"amount\n12\n"})
    skills = Skills.load(tmp_path, python_skills)
    assert set(skills) == {"pdf-tools", "csv-totals"}
    skill = skills["csv-totals"]
    assert skill.description == "Sums the columns of CSV files. Use when the user asks for totals."
    assert "1. Sum each column." in skill.body
    assert skill.read_bytes("data/example.csv") == b"amount\n12\n"


def test_agent_gets_skills_of_functions() -> None:
    python_skills = PythonSkills()
    python_skills.add(csv_totals)
    assert "csv-totals" in AgentSkills.of(python_skills).prompt()


def test_decorator_returns_the_function() -> None:
    assert PythonSkills().add(csv_totals) is csv_totals


def test_function_without_docstring_is_rejected() -> None:
    with pytest.raises(SkillRejected, match="no docstring"):
        PythonSkills().add(without_docstring)


def test_invalid_name_is_rejected() -> None:
    with pytest.raises(SkillRejected, match="name"):
        PythonSkills().add(csv_totals, name="CSV totals")


def test_second_skill_of_the_same_name_is_a_conflict() -> None:
    python_skills = PythonSkills()
    python_skills.add(csv_totals)
    with pytest.raises(Conflict):
        python_skills.add(csv_totals)


def test_file_outside_of_the_skill_is_rejected() -> None:
    with pytest.raises(UnsafePath):
        PythonSkills().add(csv_totals, files={"../other": b""})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_folder_is_deleted_when_the_process_ends_and_not_by_a_child() -> None:
    program = (
        "import os, sys\n"
        "from skillhall import PythonSkills\n"
        "skills = PythonSkills()\n"
        "if child := os.fork():\n"
        "    os.waitpid(child, 0)\n"
        "    print(os.fspath(skills), os.path.isdir(skills))\n"
        "sys.exit()\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    folder, existed = output.split()
    assert existed == "True"
    assert not Path(folder).exists()
