"""Grading a run: each assertion goes to the first grader that accepts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.evals.eval_records import (
    AssertionResult,
    RunStatus,
    RunUsage,
    Verdict,
    add_usages,
)
from skillhall._internal.evals.grading.run_outputs import RunOutputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.evals.run_files import StoredRun
    from skillhall._internal.skill.evals.eval_assertion import EvalAssertion
    from skillhall._internal.skill.evals.eval_file import EvalCase

NO_JUDGE = "no model is configured to judge it"
NO_SCRIPTS = "scripts of the skill are not allowed to run"


@dataclass(frozen=True, slots=True)
class GradingTask:
    """A case and the outputs of one of its runs."""

    case: EvalCase
    outputs: RunOutputs


class Judgment(NamedTuple):
    """The verdict about one assertion and its evidence."""

    verdict: Verdict
    evidence: str
    is_final: bool = True  # otherwise, grading again may give a verdict


class Grades(NamedTuple):
    """The judgments about assertions, in their order, and the usage of a model."""

    judgments: Sequence[Judgment]
    usage: RunUsage = RunUsage()


class Grader(Protocol):
    """A grader of some kinds of assertions."""

    @property
    def name(self) -> str:
        """The name in results."""

    @property
    def identity(self) -> str:
        """Everything that its judgments depend on, besides the assertions and the outputs."""

    def accepts(self, assertion: EvalAssertion) -> bool:
        """Whether it can decide about an assertion."""

    async def grade(self, task: GradingTask, assertions: Sequence[EvalAssertion]) -> Grades:
        """Return a judgment for each assertion."""


@dataclass(frozen=True, slots=True)
class GradedAssertion:
    """A result, and whether it is final."""

    result: AssertionResult
    is_final: bool


@dataclass(frozen=True, slots=True)
class RunGrades:
    """The results of a run's assertions, in their order, and the usage of the judge."""

    assertions: Sequence[GradedAssertion]
    judge_usage: RunUsage


def find_grader(assertion: EvalAssertion, graders: Sequence[Grader]) -> Grader | None:
    """Return the grader that decides about an assertion."""
    return next((grader for grader in graders if grader.accepts(assertion)), None)


async def grade_assertions(
    case: EvalCase,
    stored: StoredRun,
    assertions: Sequence[EvalAssertion],
    graders: Sequence[Grader],
) -> RunGrades:
    """Return the verdicts about some assertions of a run, in their order."""
    run = stored.record
    if run.status in {RunStatus.FAILED, RunStatus.SKIPPED}:
        reason = f"the run was {run.status}: {run.reason}"
        return RunGrades([_leave_out(one, reason) for one in assertions], RunUsage())
    task = GradingTask(case, RunOutputs.of_run(stored))
    found: dict[int, GradedAssertion] = {}
    usages = []
    for grader in graders:
        numbers = [
            number
            for number, assertion in enumerate(assertions)
            if find_grader(assertion, graders) is grader
        ]
        if not numbers:
            continue
        grades = await grader.grade(task, [assertions[number] for number in numbers])
        usages.append(grades.usage)
        for number, judgment in zip(numbers, grades.judgments, strict=True):
            found[number] = _to_result(assertions[number], judgment, grader)
    return RunGrades(
        [
            found.get(number)
            or _leave_out(assertion, NO_JUDGE if assertion.check is None else NO_SCRIPTS)
            for number, assertion in enumerate(assertions)
        ],
        add_usages(usages),
    )


def _to_result(assertion: EvalAssertion, judgment: Judgment, grader: Grader) -> GradedAssertion:
    result = AssertionResult(
        text=assertion.text,
        verdict=judgment.verdict,
        evidence=judgment.evidence,
        grader=grader.name,
    )
    return GradedAssertion(result, judgment.is_final)


def _leave_out(assertion: EvalAssertion, reason: str) -> GradedAssertion:
    result = AssertionResult(
        text=assertion.text, verdict=Verdict.NOT_JUDGED, evidence=reason, grader=""
    )
    return GradedAssertion(result, is_final=False)
