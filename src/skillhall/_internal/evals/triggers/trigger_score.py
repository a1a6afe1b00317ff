"""Scores of trigger evals: precision, recall, and skills loaded instead.

A rate is the mean of the rates of its queries. Repeats of a query are not independent, so the
intervals count each query once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.evals.statistics import MIN_CASES, MIN_REPEATS, Interval, wilson_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.evals.triggers.trigger_records import TriggerRun
    from skillhall._internal.skill.evals.eval_file import TriggerQuery

NO_SKILL = ""  # key of runs in which no skill was loaded
_HALF = 0.5
_ALLOWED_FALSE_TRIGGERS = 0.1  # higher rates are reported if the complete interval is above


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRate:
    """A rate with its interval, and the number of queries that it is based on."""

    value: float | None  # `None` without queries
    interval: Interval
    queries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryScore:
    """The runs of one query, counted by the skill that was loaded first."""

    query: TriggerQuery
    runs: int  # that are complete
    loads: int
    failed: int
    taken: Mapping[str, int]  # numbers of runs by the skill that was loaded first, or `NO_SKILL`

    @property
    def rate(self) -> float | None:
        """The share of the runs that loaded the skill."""
        return self.loads / self.runs if self.runs else None

    @property
    def is_right(self) -> bool | None:
        """Whether most runs did what the query expects; `None` without runs."""
        return None if self.rate is None else (self.rate > _HALF) is self.query.should_trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerScore:
    """How well the description of a skill triggers it among all skills of an agent."""

    skill: str
    queries: tuple[QueryScore, ...]
    recall: TriggerRate  # of queries that should load the skill
    precision: TriggerRate  # of loads: the share that was right
    false_triggers: TriggerRate  # of queries that should not load the skill
    shortage: str  # why there is no verdict; "" if there are enough runs

    @property
    def verdict(self) -> str:
        """The verdict about the intervals, in one phrase."""
        if self.shortage:
            return f"not enough runs: {self.shortage}"
        problems = []
        if self.recall.interval.high < _HALF:
            problems.append("rarely triggers" if self.recall.value else "never triggers")
        if self.false_triggers.interval.low > _HALF:
            problems.append("triggers for most queries of other skills")
        elif self.false_triggers.interval.low > _ALLOWED_FALSE_TRIGGERS:
            problems.append("triggers for queries of other skills")
        if problems:
            return " and ".join(problems)
        if self.recall.interval.low > _HALF and self.false_triggers.interval.high < _HALF:
            return "triggers as expected"
        return "undecided: the intervals include both good and bad rates"

    def count_taken(self, *, should_trigger: bool) -> Mapping[str, int]:
        """Return the numbers of complete runs by the first loaded skill, highest first."""
        counts: Counter[str] = Counter()
        for one in self.queries:
            if one.query.should_trigger is should_trigger:
                counts.update(one.taken)
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def score_triggers(skill: str, runs: Iterable[TriggerRun]) -> TriggerScore:
    """Return the score of a skill for the runs of its queries."""
    by_query: dict[TriggerQuery, list[TriggerRun]] = {}
    for run in runs:
        by_query.setdefault(run.query, []).append(run)
    scores = tuple(_score_query(skill, query, each) for query, each in by_query.items())
    expected = [one for one in scores if one.query.should_trigger]
    others = [one for one in scores if not one.query.should_trigger]
    return TriggerScore(
        skill=skill,
        queries=scores,
        recall=_mean_rate(expected),
        precision=_compute_precision(expected, others),
        false_triggers=_mean_rate(others),
        shortage=_find_shortage(expected, others),
    )


def _score_query(skill: str, query: TriggerQuery, runs: Sequence[TriggerRun]) -> QueryScore:
    complete = [run.reply.loaded_skills for run in runs if run.is_complete]
    return QueryScore(
        query=query,
        runs=len(complete),
        loads=sum(skill in loaded for loaded in complete),
        failed=len(runs) - len(complete),
        taken=Counter(
            skill if skill in loaded else next(iter(loaded), NO_SKILL) for loaded in complete
        ),
    )


def _mean_rate(scores: Sequence[QueryScore]) -> TriggerRate:
    rates = [one.rate for one in scores if one.rate is not None]
    total = sum(rates)
    return TriggerRate(
        value=total / len(rates) if rates else None,
        interval=wilson_interval(total, len(rates)),
        queries=len(rates),
    )


def _compute_precision(expected: Sequence[QueryScore], others: Sequence[QueryScore]) -> TriggerRate:
    right, wrong = (sum(one.rate or 0 for one in scores) for scores in (expected, others))
    queries = sum(bool(one.loads) for one in (*expected, *others))
    value = right / (right + wrong) if queries else None
    interval = wilson_interval((value or 0) * queries, queries)
    return TriggerRate(value=value, interval=interval, queries=queries)


def _find_shortage(expected: Sequence[QueryScore], others: Sequence[QueryScore]) -> str:
    scores = (*expected, *others)
    if len(expected) < MIN_CASES:
        return f"fewer than {MIN_CASES} queries that should trigger"
    if len(others) < MIN_CASES:
        return f"fewer than {MIN_CASES} queries that should not trigger"
    if min(one.runs for one in scores) < MIN_REPEATS:
        return f"fewer than {MIN_REPEATS} complete runs of a query"
    return ""
