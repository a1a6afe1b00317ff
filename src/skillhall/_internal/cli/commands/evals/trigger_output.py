"""The output of `skillhall eval triggers`."""

from collections.abc import Iterator, Mapping

from skillhall._internal.cli.terminal import format_count
from skillhall._internal.evals.triggers.description_improvement import SPLIT_SEED
from skillhall._internal.evals.triggers.improvement_eval import (
    DescriptionImprovement,
    HalfScores,
)
from skillhall._internal.evals.triggers.trigger_files import serialize_score
from skillhall._internal.evals.triggers.trigger_score import QueryScore, TriggerRate, TriggerScore

_MAX_SHOWN_QUERIES = 10  # wrong ones of a skill; --json has all
_LABEL_WIDTH = 16


def format_result(score: TriggerScore) -> Iterator[str]:
    """Yield the lines about a skill."""
    yield f"{score.skill}: {score.verdict}"
    yield f"  {'recall':{_LABEL_WIDTH}}{format_rate(score.recall)}"
    yield f"  {'precision':{_LABEL_WIDTH}}{format_rate(score.precision)}"
    yield f"  {'false triggers':{_LABEL_WIDTH}}{format_rate(score.false_triggers)}"
    for should_trigger, label in ((True, "should trigger"), (False, "should not")):
        taken = score.count_taken(should_trigger=should_trigger)
        if taken:
            yield f"  {label:{_LABEL_WIDTH}}{format_taken(taken)}"
    wrong = [one for one in score.queries if one.is_right is False]
    for one in wrong[:_MAX_SHOWN_QUERIES]:
        yield f"  wrong: {_describe_query(one)}"
    if len(wrong) > _MAX_SHOWN_QUERIES:
        yield f"  … and {len(wrong) - _MAX_SHOWN_QUERIES} more"


def format_rate(rate: TriggerRate) -> str:
    """Return a rate with its interval."""
    if rate.value is None:
        return "–"
    low, high = rate.interval
    return f"{rate.value:.2f}  ({low:.2f} to {high:.2f}, {format_queries(rate.queries)})"


def format_taken(taken: Mapping[str, int]) -> str:
    """Return how many runs loaded which skill first."""
    return ", ".join(f"{name or 'no skill'} {runs}" for name, runs in taken.items())


def format_queries(count: int) -> str:
    """Return a number of queries."""
    return f"{count} {'query' if count == 1 else 'queries'}"


def format_improvement(improvement: DescriptionImprovement, *, is_written: bool) -> Iterator[str]:
    """Yield the lines about a suggested description."""
    halves = improvement.halves
    yield f"{improvement.skill}: suggested description"
    yield f"  {improvement.suggested}"
    yield (
        f"  split with seed {SPLIT_SEED}: the model saw the results of "
        f"{format_queries(len(halves.training))}, {len(halves.held_out)} were held out"
    )
    yield from _format_half("training", improvement.training)
    yield from _format_half("held out", improvement.held_out)
    if is_written:
        yield "  written to SKILL.md"
    elif improvement.is_better:
        yield "  better for held-out queries; add --write to write it"
    else:
        yield "  not better for held-out queries; not written"


def _format_half(label: str, scores: HalfScores) -> Iterator[str]:
    for name, before, after in (
        ("recall", scores.before.recall, scores.after.recall),
        ("false triggers", scores.before.false_triggers, scores.after.false_triggers),
    ):
        yield f"  {label}, {name}: {format_rate(before)} -> {format_rate(after)}"


def serialize_improvement(improvement: DescriptionImprovement) -> dict[str, object]:
    """Return a suggested description for JSON output."""
    return {
        "skill": improvement.skill,
        "current": improvement.current,
        "suggested": improvement.suggested,
        "is_better": improvement.is_better,
        "seed": SPLIT_SEED,
        "training": _serialize_half(improvement.training),
        "held_out": _serialize_half(improvement.held_out),
    }


def _serialize_half(scores: HalfScores) -> dict[str, object]:
    return {"before": serialize_score(scores.before), "after": serialize_score(scores.after)}


def _describe_query(score: QueryScore) -> str:
    expected = "should trigger" if score.query.should_trigger else "should not trigger"
    runs = format_count(score.runs, "run")
    return f"{score.query.query!r} {expected}; loaded in {score.loads} of {runs}"
