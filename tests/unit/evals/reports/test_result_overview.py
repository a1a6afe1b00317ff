"""The latest results of a skill in a few numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.reports.result_overview import find_overview
from skillhall._internal.evals.summary_files import SUMMARY_FILE
from skillhall._internal.evals.triggers.trigger_files import RESULT_FILE, write_trigger_result
from tests.support.eval_results import (
    DIGEST,
    make_helpful_runs,
    make_trigger_result,
    store_runs,
)

OTHER = f"sha256:{'1' * 64}"


@pytest.fixture
def workspace(tmp_path: Path) -> EvalWorkspace:
    return EvalWorkspace(tmp_path)


def test_overview_has_the_rates_of_cases_and_triggers(workspace: EvalWorkspace) -> None:
    store_runs(workspace, make_helpful_runs())
    write_trigger_result(workspace.create_iteration({}, 1), make_trigger_result())
    overview = find_overview(workspace, "csv", DIGEST)

    assert overview is not None
    assert overview.is_current
    assert [(one.name, round(one.value, 2)) for one in overview.rates] == [
        ("with_skill", 1.0),
        ("without_skill", 0.17),
        ("difference", 0.83),
        ("recall", 1.0),
        ("precision", 1.0),
        ("false_triggers", 0.0),
    ]
    assert overview.verdicts == ("better", "triggers as expected")
    assert "difference +0.83 (+0.33 to +1.00)" in overview.text


def test_results_of_the_current_files_precede_newer_ones_of_others(
    workspace: EvalWorkspace,
) -> None:
    store_runs(workspace, make_helpful_runs(), DIGEST)
    store_runs(workspace, make_helpful_runs(cases=2), OTHER)
    current, other = (
        find_overview(workspace, "csv", DIGEST),
        find_overview(workspace, "csv", "sha256:2"),
    )

    assert current is not None
    assert (current.digest, current.is_current) == (DIGEST, True)
    assert other is not None
    assert (other.digest, other.is_current) == (OTHER, False)
    assert other.text.endswith("; older version sha256:111111111111")


def test_each_model_has_its_newest_rates_and_the_means_of_its_runs(
    workspace: EvalWorkspace,
) -> None:
    for cases, model in ((2, "a"), (6, "a"), (4, "b")):
        store_runs(workspace, make_helpful_runs(cases), agent={"model": model})
    write_trigger_result(workspace.create_iteration({}, 1), make_trigger_result())
    overview = find_overview(workspace, "csv", DIGEST)

    assert overview is not None
    assert overview.model == "b, openai-chat:gpt-5"  # of the triggers
    assert [(one.model, one.comparison) for one in overview.models] == [
        ("b", "not_enough_runs"),
        ("a", "better"),
    ]
    assert "; a: better" in overview.text
    assert [*overview.models[1].list_rows()] == [
        ("a", "with_skill", "1.00 (0.61 to 1.00)", "1,000", "1.50", "$0.0020"),
        ("a", "without_skill", "0.17 (0.03 to 0.56)", "1,000", "1.50", "$0.0020"),
        ("a", "difference", "+0.83 (+0.33 to +1.00)", "+0.00", "+0.00", "+$0.0000"),
    ]


def test_selected_cases_do_not_replace_the_results_of_all(workspace: EvalWorkspace) -> None:
    store_runs(workspace, make_helpful_runs(cases=1), complete=False)
    assert find_overview(workspace, "csv", DIGEST) is not None
    store_runs(workspace, make_helpful_runs())
    store_runs(workspace, make_helpful_runs(cases=1), complete=False)
    overview = find_overview(workspace, "csv", DIGEST)

    assert overview is not None
    assert overview.verdicts == ("better",)


def test_newest_result_of_the_same_files_counts(workspace: EvalWorkspace) -> None:
    for loaded in ("csv", ""):
        iteration = workspace.create_iteration({}, 1)
        write_trigger_result(iteration, make_trigger_result(loaded=loaded))
    overview = find_overview(workspace, "csv", DIGEST)
    assert overview is not None
    assert overview.verdicts == ("never triggers",)


def test_results_of_another_skill_with_the_same_folder_name_are_left_out(
    workspace: EvalWorkspace,
) -> None:
    store_runs(workspace, make_helpful_runs())
    assert find_overview(workspace, "pdf", DIGEST) is None


def test_workspace_without_results_has_no_overview(workspace: EvalWorkspace) -> None:
    assert find_overview(workspace, "csv", DIGEST) is None


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        "{}",
        '{"arms": {"with_skill": {"pass_rate": 1}}, "differences": []}',
        '{"arms": {}, "differences": [1], "skill_digest": ""}',
        '{"recall": 1, "skill_digest": "", "model": "", "verdict": ""}',
        '{"recall": {"value": "x"}, "skill_digest": "", "model": "", "verdict": ""}',
    ],
)
def test_invalid_files_are_left_out(workspace: EvalWorkspace, text: str) -> None:
    iteration = workspace.create_iteration({}, 1)
    for name in (SUMMARY_FILE, RESULT_FILE):
        (iteration.path / name).write_text(text)
    assert find_overview(workspace, "csv", DIGEST) is None
