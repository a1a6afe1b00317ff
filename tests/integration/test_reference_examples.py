"""The examples of the references yield what the pages say."""

import json
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from skillhall._internal.skill.finding import Code
from tools.finding_reference import EXPLANATIONS

SKILLS = {code: parts["skill"] for code, parts in EXPLANATIONS.items() if "skill" in parts}


@pytest.mark.parametrize("code", SKILLS)
def test_example_of_a_finding_yields_the_finding(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "example"
    folder.mkdir()
    (folder / "SKILL.md").write_bytes(SKILLS[code].encode())
    found = set()
    for command in ("validate", "scan"):
        run([command, "--json", str(folder)])
        found |= {finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert code in found


def test_every_finding_has_a_fix_and_one_example() -> None:
    assert set(EXPLANATIONS) == set(Code)
    for code, parts in EXPLANATIONS.items():
        assert set(parts) in ({"fix", "example"}, {"fix", "skill"}), code
