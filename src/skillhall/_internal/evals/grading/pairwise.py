"""A model that compares two answers in both orders.

It does not know which answer had the skill.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_records import Arm, RunStatus, RunUsage, add_usages
from skillhall._internal.evals.grading.judge_grader import ERRORS_OF_EVERY_REQUEST
from skillhall._internal.evals.grading.judge_reply import UnusableReply, parse_reply
from skillhall._internal.evals.grading.judge_request import (
    COMPARISON_INSTRUCTIONS,
    build_comparison_request,
)
from skillhall._internal.evals.grading.run_outputs import RunOutputs
from skillhall._internal.evals.grading_files import digest_record
from skillhall._internal.evals.pair_comparison import (
    Choice,
    OrderedChoice,
    PairComparison,
    read_comparison,
    write_comparison,
)
from skillhall.errors import ModelUnavailable

if TYPE_CHECKING:
    from skillhall._internal.evals.eval_workspace import EvalIteration
    from skillhall._internal.evals.run_files import StoredRun
    from skillhall._internal.evals.text_model import TextModel
    from skillhall._internal.skill.evals.eval_file import EvalCase

_MAX_REASON = 300  # characters
_VERSION = 1  # raise it when the requests change
_CHOICES = {1: Choice.FIRST, 2: Choice.SECOND, 0: Choice.TIE}
_COMPARABLE = frozenset({RunStatus.COMPLETED, RunStatus.LIMITED})


@dataclass(frozen=True, slots=True)
class PairwiseJudge:
    """Compares the runs of an iteration. Stored comparisons are reused."""

    model: TextModel
    iteration: EvalIteration

    async def compare(self, case: EvalCase, baseline: StoredRun) -> RunUsage:
        """Compare a baseline run with the run that had the skill; return the new usage.

        Raises: OSError, ModelUnavailable if every request would fail.
        """
        key = baseline.record.key
        skill = self.iteration.read_run(key._replace(arm=Arm.WITH_SKILL))
        if skill is None or {skill.record.status, baseline.record.status} - _COMPARABLE:
            return RunUsage()
        digest = self._digest(case, skill, baseline)
        stored = read_comparison(self.iteration, key)
        if stored is not None and stored.digest == digest and Choice.NONE not in stored.choices:
            return RunUsage()
        outputs = RunOutputs.of_run(skill), RunOutputs.of_run(baseline)
        skill_first, first_usage = await self._ask(case, *outputs)
        skill_second, second_usage = await self._ask(case, *reversed(outputs))
        comparison = PairComparison(
            key=key,
            digest=digest,
            skill_first=skill_first,
            skill_second=skill_second,
            usage=add_usages([first_usage, second_usage]),
        )
        earlier = stored.usage if stored is not None and stored.digest == digest else RunUsage()
        total = replace(comparison, usage=add_usages([comparison.usage, earlier]))
        write_comparison(self.iteration, total)
        return comparison.usage

    async def _ask(
        self, case: EvalCase, first: RunOutputs, second: RunOutputs
    ) -> tuple[OrderedChoice, RunUsage]:
        request = build_comparison_request(case, first, second)
        try:
            reply = await self.model.ask(COMPARISON_INSTRUCTIONS, request)
        except ModelUnavailable as error:
            if error.code in ERRORS_OF_EVERY_REQUEST:
                raise
            return OrderedChoice(Choice.NONE, str(error)), RunUsage()
        return parse_choice(reply.text), reply.usage

    def _digest(self, case: EvalCase, skill: StoredRun, baseline: StoredRun) -> str:
        runs = [digest_record(one.record) for one in (skill, baseline)]
        parts = [_VERSION, self.model.name, case.prompt, case.expected_output, *runs]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def parse_choice(reply: str) -> OrderedChoice:
    """Return the choice in the reply of a judge."""
    try:
        fields = parse_reply(reply)
    except UnusableReply as error:
        return OrderedChoice(Choice.NONE, f"the reply cannot be used: {error}")
    better, reason = fields.get("better"), fields.get("reason")
    is_number = isinstance(better, int) and not isinstance(better, bool)
    if not is_number or better not in _CHOICES:
        return OrderedChoice(Choice.NONE, "the reply cannot be used: it chooses no answer")
    return OrderedChoice(_CHOICES[better], reason[:_MAX_REASON] if isinstance(reason, str) else "")
