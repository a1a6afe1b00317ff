"""Every broken skill of a folder is reported with a code and a line."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from tests.support.broken_skills import BROKEN_SKILLS, BrokenSkill

LINE = re.compile(r"(?P<path>[^\n]+?):(?P<line>\d+): reject\[(?P<code>[a-z0-9-]+)\]: \S[^\n]*")


def can_be_made(skill: BrokenSkill) -> bool:
    # Root can read every file, and Windows has no named pipes in folders.
    if skill.folder == "unreadable":
        return hasattr(os, "geteuid") and os.geteuid() != 0
    return skill.folder != "pipe" or hasattr(os, "mkfifo")


SKILLS = [skill for skill in BROKEN_SKILLS if can_be_made(skill)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("broken") / "skills"
    folder.mkdir()
    for skill in SKILLS:
        skill.make(folder)
    yield folder
    for file in folder.glob("unreadable/SKILL.md"):
        file.chmod(0o600)


def validate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "skillhall", "validate", str(root), *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


def test_there_are_fifty_kinds_of_broken_skills() -> None:
    assert len({skill.folder for skill in BROKEN_SKILLS}) == len(BROKEN_SKILLS) >= 50


def test_validate_reports_code_and_line_of_every_broken_skill(root: Path) -> None:
    result = validate(root)
    reported = {
        (Path(match["path"]).relative_to(root).parts[0], match["code"])
        for match in LINE.finditer(result.stdout)
    }
    assert {(skill.folder, skill.code.value) for skill in SKILLS} - reported == set()
    assert result.returncode == 1
    assert "Traceback" not in result.stdout + result.stderr


def test_every_output_line_is_a_finding_or_a_hint(root: Path) -> None:
    for line in validate(root).stdout.splitlines():
        assert re.fullmatch(r".+:\d+: (reject|warn)\[[a-z0-9-]+\]: .+|    hint: .+", line), line
        assert line.isprintable()


def test_json_has_one_rejected_result_for_each_broken_skill(root: Path) -> None:
    result = validate(root, "--json")
    report = json.loads(result.stdout)
    results = {Path(entry["path"]).name: entry for entry in report["data"]["results"]}
    assert sorted(results) == sorted(skill.folder for skill in SKILLS)
    assert not any(entry["accepted"] for entry in results.values())
    assert result.returncode == 1
    assert report["ok"] is False


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.folder)
def test_single_broken_skill_is_rejected(
    skill: BrokenSkill, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["validate", str(root / skill.folder), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    rejecting = [f for f in report["findings"] if f["effect"] == "reject"]
    assert rejecting
    assert all(finding["line"] >= 1 for finding in rejecting)


@pytest.mark.parametrize("form", ["sarif", "github"])
def test_machine_readable_reports_contain_every_broken_skill(form: str, root: Path) -> None:
    result = validate(root, "--format", form)
    assert result.returncode == 1
    for skill in SKILLS:
        assert f"/{skill.folder}" in result.stdout
        assert skill.code in result.stdout


def test_listing_broken_skills_succeeds_and_counts_them(root: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "skillhall", "list", str(root)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert result.returncode == 0
    assert re.search(r"\d+ skills skipped, \d+ warnings; see 'skillhall validate", result.stderr)


def test_fix_never_makes_a_skill_worse(root: Path) -> None:
    before = json.loads(validate(root, "--json").stdout)["data"]["summary"]
    result = validate(root, "--fix", "--dry-run", "--json")
    assert json.loads(result.stdout)["data"]["summary"] == before
    assert "Traceback" not in result.stderr
