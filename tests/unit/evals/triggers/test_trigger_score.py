"""Scores of trigger runs."""

from __future__ import annotations

import pytest

from skillhall._internal.evals.eval_records import RunStatus
from skillhall._internal.evals.triggers.trigger_records import TriggerReply, TriggerRun
from skillhall._internal.evals.triggers.trigger_score import score_triggers
from skillhall._internal.skill.evals.eval_file import TriggerQuery


def make_runs(
    query: str, *loaded: str, should_trigger: bool = True, failed: int = 0
) -> list[TriggerRun]:
    """Create a run for each loaded skill; "" if none was loaded."""
    replies = [
        TriggerReply(status=RunStatus.COMPLETED, loaded_skills=(name,) if name else ())
        for name in loaded
    ]
    replies += [TriggerReply(status=RunStatus.FAILED)] * failed
    return [
        TriggerRun(
            query=TriggerQuery(query, should_trigger), repeat=number, digest=query, reply=reply
        )
        for number, reply in enumerate(replies, 1)
    ]


def make_all(expected: tuple[str, ...], others: tuple[str, ...]) -> list[TriggerRun]:
    """Create three equal runs for each of five queries of both kinds."""
    return [
        run
        for number, (first, second) in enumerate(zip(expected, others, strict=True))
        for run in (
            *make_runs(f"own {number}", *[first] * 3),
            *make_runs(f"other {number}", *[second] * 3, should_trigger=False),
        )
    ]


def test_rates_are_means_over_queries() -> None:
    runs = [*make_runs("a", "csv", "csv"), *make_runs("b", "csv", "pdf", "", "")]
    score = score_triggers("csv", runs)

    assert score.recall.value == pytest.approx((1 + 0.25) / 2)
    assert score.recall.queries == 2
    assert score.precision.value == 1.0
    assert score.count_taken(should_trigger=True) == {"csv": 3, "": 2, "pdf": 1}


def test_more_repeats_do_not_narrow_the_interval() -> None:
    few, many = (score_triggers("csv", make_runs("a", *["csv"] * n)) for n in (3, 300))
    assert few.recall.interval == many.recall.interval


def test_failed_runs_are_not_counted_as_misses() -> None:
    score = score_triggers("csv", make_runs("a", "csv", failed=2))
    assert (score.recall.value, score.queries[0].failed) == (1.0, 2)


def test_skill_loaded_together_with_another_counts_as_loaded() -> None:
    (run,) = make_runs("a", "pdf")
    both = TriggerReply(status=RunStatus.COMPLETED, loaded_skills=("pdf", "csv"))
    run = TriggerRun(query=run.query, repeat=1, digest="", reply=both)
    assert score_triggers("csv", [run]).recall.value == 1.0


@pytest.mark.parametrize(
    ("expected", "others", "verdict"),
    [
        (("csv",) * 5, ("",) * 5, "triggers as expected"),
        (("",) * 5, ("",) * 5, "never triggers"),
        (("csv",) * 5, ("csv",) * 5, "triggers for most queries of other skills"),
        (("csv",) * 5, ("csv",) * 3 + ("",) * 2, "triggers for queries of other skills"),
        (
            ("pdf",) * 5,
            ("csv",) * 5,
            "never triggers and triggers for most queries of other skills",
        ),
        (
            ("csv",) * 3 + ("",) * 2,
            ("",) * 5,
            "undecided: the intervals include both good and bad rates",
        ),
    ],
)
def test_verdict_follows_the_intervals(
    expected: tuple[str, ...], others: tuple[str, ...], verdict: str
) -> None:
    assert score_triggers("csv", make_all(expected, others)).verdict == verdict


@pytest.mark.parametrize(
    ("runs", "shortage"),
    [
        (make_all(("csv",) * 4, ("",) * 4), "fewer than 5 queries that should trigger"),
        (
            [run for run in make_all(("csv",) * 5, ("",) * 5) if run.repeat < 3],
            "fewer than 3 complete runs of a query",
        ),
        ([], "fewer than 5 queries that should trigger"),
        (
            [run for run in make_all(("csv",) * 5, ("",) * 5) if run.query.should_trigger],
            "fewer than 5 queries that should not trigger",
        ),
    ],
)
def test_few_runs_get_no_verdict(runs: list[TriggerRun], shortage: str) -> None:
    assert score_triggers("csv", runs).verdict == f"not enough runs: {shortage}"
