"""`skillhall eval compare`: two iterations, paired by case."""

import json
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from skillhall._internal.evals.eval_records import Arm
from skillhall._internal.evals.grading_files import DocumentedResult, render_grading
from tests.support.eval_skills import make_case, make_eval_skill
from tests.support.eval_verdicts import store_runs

CHECK = {"text": "names July", "type": "contains", "value": "July"}
CASES = [f"c{number}" for number in range(5)]


def grade_replies(skill: Path, reply: str, *cases: str) -> Path:
    """Store an iteration with equal replies, and grade it."""
    replies = dict.fromkeys(cases or CASES, (reply, reply, reply))
    iteration = store_runs(skill, {Arm.WITH_SKILL: replies})
    assert run(["eval", "grade", str(skill)]) == 0
    return iteration.path


@pytest.fixture
def skill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    cases = [make_case(one, assertions=[CHECK]) for one in CASES]
    return make_eval_skill(tmp_path / "skills", cases)


def compare(capsys: pytest.CaptureFixture[str], before: Path, after: Path) -> Any:  # noqa: ANN401
    capsys.readouterr()
    assert run(["eval", "compare", str(before), str(after), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["data"]


def test_iterations_are_compared_by_case(skill: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = grade_replies(skill, "May"), grade_replies(skill, "July")
    data = compare(capsys, before, after)

    assert (data["difference"], data["verdict"], data["cases"]) == (1.0, "better", 5)
    assert data["low"] > 0.5
    assert data["changed_cases"][0] == {"id": "c0", "before": 0.0, "after": 1.0}
    assert compare(capsys, after, before)["verdict"] == "worse"


def test_skill_means_its_last_graded_iteration(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = grade_replies(skill, "May"), grade_replies(skill, "July")
    store_runs(skill, {Arm.WITH_SKILL: {"c0": ("x",)}})

    assert compare(capsys, before, skill)["after"]["path"] == str(after)
    workspace = skill.with_name("csv-report-workspace")
    assert compare(capsys, before, workspace)["after"]["path"] == str(after)


def test_cases_of_one_side_and_changed_assertions_are_named(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = grade_replies(skill, "May", "c0", "c1")
    cases = [make_case("c1", assertions=[{**CHECK, "text": "has July"}])]
    (skill / "evals/evals.json").write_text(json.dumps({"evals": cases}))
    data = compare(capsys, before, grade_replies(skill, "July", "c1"))

    assert (data["unpaired_cases"], data["changed_assertions"]) == (["c0"], ["c1"])
    assert data["verdict"] == "not_enough_runs"


def test_documented_files_of_other_tools_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, passed in ((1, False), (2, True)):
        for case in CASES:
            folder = tmp_path / f"w/iteration-{number}/eval-{case}/with_skill"
            folder.mkdir(parents=True)
            (folder / "grading.json").write_bytes(
                render_grading([DocumentedResult("names July", passed, "")])
            )
    before, after = tmp_path / "w/iteration-1", tmp_path / "w/iteration-2"
    data = compare(capsys, before, after)

    assert (data["difference"], data["cases"]) == (1.0, 5)
    assert data["reason"] == "not enough runs: 0 of at least 5 cases have 3 repeats"
    assert run(["eval", "compare", str(before), str(after)]) == 0
    assert "  case c0: 0% → 100%" in capsys.readouterr().out


def test_folder_without_graded_runs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", "compare", str(tmp_path), str(tmp_path)]) == 3
    assert "there are no graded runs" in capsys.readouterr().err
