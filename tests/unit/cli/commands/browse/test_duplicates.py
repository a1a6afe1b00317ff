"""`skillhall duplicates`: lines, JSON, exit codes."""

import json
from pathlib import Path

import pytest

from skillhall._internal.cli.parallel_map import MIN_ITEMS
from skillhall._internal.cli.runner import run
from tests.support.skills import make_skill, make_skill_md

BODY = "# Steps\n\nOpen the file, read every page of it, and write the words to a new file.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    for name, body in (("pdf", BODY), ("pdf-copy", BODY.upper()), ("other", "Nothing alike.\n")):
        make_skill(folder, name, data=make_skill_md(name, "Reads PDF files.", body))
    return folder


def test_duplicates_prints_groups_with_differences(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["duplicates", str(root)]) == 0
    output = capsys.readouterr()
    differences = "name differs, 2 lines added, 2 lines removed"
    assert output.out.splitlines() == [
        f"same-text  pdf  {root}/pdf/SKILL.md",
        f"  100%  pdf-copy  {root}/pdf-copy/SKILL.md  ({differences})",
    ]
    assert output.err == "3 skills compared: 1 group of copies\n"


def test_duplicates_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["duplicates", str(root), "--threshold", "0.8", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    (group,) = data.pop("groups")
    assert data == {"compared": 3, "unreadable": [], "commonPhrases": 0, "threshold": 0.8}
    assert (group["kind"], group["similarity"]) == ("same-text", 1.0)
    assert group["skills"][1] == {
        "name": "pdf-copy",
        "location": f"{root}/pdf-copy/SKILL.md",
        "similarity": 1.0,
        "differences": {"fields": ["name"], "addedLines": 2, "removedLines": 2, "files": []},
    }


def test_duplicates_without_copies_succeeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_skill(tmp_path, "pdf")
    assert run(["duplicates", str(tmp_path)]) == 0
    assert capsys.readouterr() == ("", "1 skill compared: no copies\n")


@pytest.mark.parametrize("threshold", ["0", "1.5", "nan", "many"])
def test_duplicates_with_a_bad_threshold_is_a_usage_error(
    root: Path, threshold: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["duplicates", str(root), "--threshold", threshold]) == 2
    assert "threshold" in capsys.readouterr().err


def test_duplicates_in_a_missing_folder_is_not_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["duplicates", str(tmp_path / "none")]) == 4
    assert "none" in capsys.readouterr().err


def test_duplicates_of_many_skills_uses_processes_and_gives_the_same_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(MIN_ITEMS):
        body = f"{BODY} Number {number // 2} is {number // 2 * 7}.\n" * 3
        make_skill(tmp_path, f"skill{number}", data=make_skill_md(f"s{number}", "Reads.", body))
    assert run(["duplicates", str(tmp_path), "--threshold", "1", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["data"]["groups"]
    assert [len(group["skills"]) for group in groups] == [2] * (MIN_ITEMS // 2)
