"""Results of a skill, read from its workspace."""

from __future__ import annotations

from pathlib import Path

from skillhall._internal.evals.eval_records import Arm, RunKey
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.reports.html_report import render_html
from skillhall._internal.evals.reports.markdown_summary import render_markdown
from skillhall._internal.evals.reports.stored_results import (
    read_skill_results,
    serialize_skill_results,
)
from skillhall._internal.evals.runs.evaluated_skill import read_evaluated_skill
from skillhall._internal.evals.triggers.trigger_files import write_trigger_result
from tests.support.eval_results import (
    make_helpful_runs,
    make_summary,
    make_trigger_result,
    store_runs,
)
from tests.support.skills import make_skill


def test_runs_triggers_and_transcripts_are_read(tmp_path: Path) -> None:
    folder, workspace = make_skill(tmp_path, "csv"), EvalWorkspace(tmp_path / "csv-workspace")
    runs = make_helpful_runs()
    store_runs(workspace, runs)
    write_trigger_result(workspace.create_iteration({}, 1), make_trigger_result())
    results = read_skill_results("csv", str(folder), workspace)

    assert results.summary == make_summary(runs)
    assert len([*results.runs]) == len([*results.runs]) == 36
    assert results.triggers == make_trigger_result()
    assert results.is_current is False
    assert results.prompts == {"1": "Sum a.csv"}
    (entry,) = results.read_transcript(RunKey("2", Arm.WITH_SKILL, 1))
    assert entry["content"] == "Case 2"
    assert serialize_skill_results(results)["is_current"] is False


def test_workspace_without_results_is_empty(tmp_path: Path) -> None:
    folder, workspace = make_skill(tmp_path, "csv"), EvalWorkspace(tmp_path / "csv-workspace")
    workspace.create_iteration({}, 1)
    results = read_skill_results("csv", str(folder), workspace)
    assert results.is_empty
    assert [*results.runs] == []
    assert not results.read_transcript(RunKey("1", Arm.WITH_SKILL, 1))


def test_selected_cases_are_shown_only_without_other_results(tmp_path: Path) -> None:
    skill, workspace = make_skill(tmp_path, "csv"), EvalWorkspace(tmp_path / "csv-workspace")
    sizes = []
    for cases, is_complete in ((1, False), (6, True), (2, False)):
        store_runs(workspace, make_helpful_runs(cases), complete=is_complete)
        summary = read_skill_results("csv", str(skill), workspace).summary
        sizes.append(0 if summary is None else len(summary.cases))
    store_runs(workspace, make_helpful_runs(2), "sha256:1", complete=False)
    newer = read_skill_results("csv", str(skill), workspace).summary

    assert sizes == [1, 6, 6]
    assert newer is not None
    assert newer.subject.skill_digest == "sha256:1"


def test_reports_of_several_models_have_a_table(tmp_path: Path) -> None:
    skill = make_skill(tmp_path, "csv")
    digest = read_evaluated_skill("csv", str(skill)).digest
    workspace = EvalWorkspace.of_skill(str(skill))
    for model in ("a", "b"):
        store_runs(workspace, make_helpful_runs(), digest, agent={"model": model})
    results = read_skill_results("csv", str(skill), workspace)

    assert [one.model for one in results.models] == ["b", "a"]
    markdown, html = render_markdown([results]), render_html([results])
    assert "\n| a | with the skill | 1.00 \\(0.61 to 1.00\\) | 1,000 | 1.50 |" in markdown
    assert '<th scope="row">a</th><td data-label="Runs">with the skill</td>' in html
