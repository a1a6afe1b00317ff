"""A model that judges assertions, and whose evidence is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_records import RunUsage, Verdict, add_usages
from skillhall._internal.evals.grading.grader import Grades, Judgment
from skillhall._internal.evals.grading.judge_reply import (
    UnusableReply,
    judge_result,
    parse_results,
)
from skillhall._internal.evals.grading.judge_request import (
    GRADING_INSTRUCTIONS,
    build_grading_request,
    compute_code,
)
from skillhall.errors import ModelUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.evals.grading.grader import GradingTask
    from skillhall._internal.evals.grading.judge_reply import JudgeResult
    from skillhall._internal.evals.text_model import TextModel
    from skillhall._internal.skill.evals.eval_assertion import EvalAssertion

ERRORS_OF_EVERY_REQUEST = ("unauthenticated", "invalid_argument")
_VERSION = 1  # raise it when the requests change
_MAX_ATTEMPTS = 2
_MAX_SHOWN = 200  # characters of a reply in evidence


@dataclass(frozen=True, slots=True)
class JudgeGrader:
    """The grader of text assertions.

    Each request includes a control assertion that is false. If the judge passes it, all verdicts of
    the reply are void: the judge did not read the outputs, or followed instructions in them.
    """

    model: TextModel
    name: str = "judge"

    @property
    def identity(self) -> str:
        """The model and the version of the requests."""
        return f"judge {_VERSION} {self.model.name}"

    def accepts(self, assertion: EvalAssertion) -> bool:
        """Whether the assertion has no check."""
        return assertion.check is None

    async def grade(self, task: GradingTask, assertions: Sequence[EvalAssertion]) -> Grades:
        """Return a judgment for each assertion.

        Raises: ModelUnavailable if every request would fail.
        """
        texts = [assertion.text for assertion in assertions]
        code = compute_code(task.case.prompt, task.outputs.reply, *texts)
        control = int(code, 16) % (len(texts) + 1)  # its position varies
        texts.insert(control, f"The outputs contain the code {code}")
        request = build_grading_request(task, texts)
        try:
            results, problem, usage = await self._ask(request)
        except ModelUnavailable as error:
            if error.code in ERRORS_OF_EVERY_REQUEST:
                raise
            reason = f"the judge is not available: {error}"
            return Grades([Judgment(Verdict.NOT_JUDGED, reason, is_final=False)] * len(assertions))
        if not problem and control + 1 in results and _is_passed(results[control + 1]):
            problem = "the judge passed an assertion that is false, so its verdicts do not count"
        numbers = [number for number in range(1, len(texts) + 1) if number != control + 1]
        judgments = [
            Judgment(Verdict.NOT_JUDGED, problem, is_final=False)
            if problem
            else judge_result(results[number], task.outputs)
            if number in results
            else Judgment(Verdict.NOT_JUDGED, "the judge gave no clear verdict on it")
            for number in numbers
        ]
        return Grades(judgments, usage)

    async def _ask(self, request: str) -> tuple[dict[int, JudgeResult], str, RunUsage]:
        """Return the results, or the problem, and the usage of all attempts.

        Raises: ModelUnavailable.
        """
        usages: list[RunUsage] = []
        problem = ""
        for _ in range(_MAX_ATTEMPTS):
            reply = await self.model.ask(GRADING_INSTRUCTIONS, request)
            usages.append(reply.usage)
            try:
                return parse_results(reply.text), "", add_usages(usages)
            except UnusableReply as error:
                shown = " ".join(reply.text[:_MAX_SHOWN].split())
                problem = f"the reply of the judge cannot be used ({error}): {shown!r}"
        return {}, problem, add_usages(usages)


def _is_passed(result: JudgeResult) -> bool:
    return result.verdict is Verdict.PASSED
