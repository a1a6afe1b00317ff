"""Eval results as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from skillhall._internal.evals.eval_records import Arm, RunStatus, Verdict
from skillhall._internal.evals.reports.junit_xml import render_junit
from skillhall._internal.evals.reports.skill_results import SkillResults
from tests.support.eval_results import (
    make_graded_run,
    make_hostile_results,
    make_results,
    make_summary,
)


def parse(results: SkillResults) -> ET.Element:
    return ET.fromstring(render_junit([results]))  # noqa: S314 - our own document


def test_junit_counts_failed_runs_queries_and_gates() -> None:
    root = parse(make_results())
    (suite,) = root
    # 18 runs with the skill, 12 queries, 2 gates; baseline runs are not tests.
    assert (suite.get("tests"), suite.get("failures")) == ("32", "7")
    failed = [
        case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None
    ]
    assert failed[0] == "Query 1, other"
    assert failed[-1] == "triggers.recall>=0.9"
    properties = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert properties["triggers.recall"] == "1.0000"
    assert properties["delta.without_skill"] == "better: +0.83 (+0.33 to +1.00)"


@pytest.mark.parametrize(
    ("status", "verdict", "tag"),
    [
        (RunStatus.FAILED, Verdict.NOT_JUDGED, "error"),
        (RunStatus.LIMITED, Verdict.FAILED, "failure"),
        (RunStatus.SKIPPED, Verdict.NOT_JUDGED, "skipped"),
        (RunStatus.COMPLETED, Verdict.FAILED, "failure"),
        (RunStatus.COMPLETED, Verdict.NOT_JUDGED, "skipped"),
    ],
)
def test_junit_shows_how_a_run_ended(status: RunStatus, verdict: Verdict, tag: str) -> None:
    run = make_graded_run("1", Arm.WITH_SKILL, 1, verdict, status=status)
    results = SkillResults(skill_name="csv", summary=make_summary([run]), runs=[run])
    (case,) = parse(results).iter("testcase")
    assert [child.tag for child in case] == [tag]


def test_texts_of_others_are_valid_in_junit() -> None:
    root = parse(make_hostile_results())
    assert root[0].get("name", "").startswith("</script>")
