"""`skillhall mcp --check`: the skills that clients see, and why others are not listed."""

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


def test_check_prints_uris_and_listing_status(
    skills: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["mcp", "--check", str(skills)]) == 0
    output = capsys.readouterr()
    assert output.out.splitlines() == [
        "Odd Name\tskill://~odd/Odd%20Name\tnot listed",
        "good\tskill://good\tlisted",
        "tools\tskill://tools\tnot listed",
    ]
    assert "skills/list excludes 'tools': 'allowed-tools' is not a string" in output.err


def test_check_has_json_output(skills: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "--json", str(skills)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["data"]["skills"][1] == {"name": "good", "uri": "skill://good", "listed": True}
    codes = {finding["code"] for finding in report["findings"]}
    assert {"mcp-address", "mcp-left-out"} <= codes
