"""`skillhall mcp --check`: what clients would find, and why a list leaves something out."""

import json
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from tests.support.skills import make_skill, make_skill_md


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    make_skill(tmp_path, "good")
    make_skill(tmp_path, "odd", data=make_skill_md("Odd Name"))
    make_skill(tmp_path, "tools", data=make_skill_md("tools", allowed_tools="[Read]"))
    return tmp_path


def test_it_tells_each_address_and_whether_it_is_listed(
    skills: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["mcp", "--check", str(skills)]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "Odd Name\tskill://~odd/Odd%20Name\tnot listed",
        "good\tskill://good\tlisted",
        "tools\tskill://tools\tnot listed",
    ]
    assert "skills/list excludes 'tools': allowed-tools is not a string" in told.err


def test_scripts_get_the_same_as_json(skills: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "--json", str(skills)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["data"]["skills"][1] == {"name": "good", "uri": "skill://good", "listed": True}
    codes = {finding["code"] for finding in report["findings"]}
    assert {"mcp-address", "mcp-left-out"} <= codes
