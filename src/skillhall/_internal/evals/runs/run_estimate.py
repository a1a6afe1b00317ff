"""Estimates of requests, tokens and cost before a plan is run."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_records import Arm, RunStatus
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.token_count import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.evals.eval_records import RunUsage
    from skillhall._internal.evals.eval_workspace import EvalIteration
    from skillhall._internal.evals.runs.eval_plan import EvalPlan, PlannedRun
    from skillhall._internal.evals.runs.run_limits import ModelPrice

# Assumptions about a run that was never measured.
_REQUESTS = 3
_PROMPT_TOKENS = 800  # the system prompt and the tools, in each request
_OUTPUT_TOKENS = 300  # of each request
_JUDGE_PROMPT_TOKENS = 700  # the instructions and an output
_VERDICT_TOKENS = 60  # of each assertion


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """Estimated usage of missing runs; for `measured` of them, from earlier runs."""

    runs: int = 0
    measured: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None

    @property
    def total_tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEstimate:
    """Estimated usage of the judge for new runs."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


def estimate_judge(missing: Sequence[PlannedRun], *, is_compared: bool) -> JudgeEstimate:
    """Estimate the usage of the judge for the missing runs.

    A run needs a request if its case has text assertions, and a blind comparison needs two.
    """
    requests = input_tokens = output_tokens = 0
    for run in missing:
        case = run.case.case
        texts = [one.text for one in case.assertions if one.check is None]
        count = bool(texts) + 2 * (is_compared and run.key.arm is not Arm.WITH_SKILL)
        shown = map(estimate_tokens, [case.prompt, case.expected_output, *texts])
        requests += count
        input_tokens += count * (_JUDGE_PROMPT_TOKENS + sum(shown))
        output_tokens += _VERDICT_TOKENS * (count + len(texts))
    return JudgeEstimate(requests=requests, input_tokens=input_tokens, output_tokens=output_tokens)


def estimate_runs(
    plan: EvalPlan,
    missing: Sequence[PlannedRun],
    iterations: Iterable[EvalIteration],
    price: ModelPrice | None = None,
) -> RunEstimate:
    """Estimate the missing runs from earlier runs of the same case and arm."""
    measured: dict[tuple[str, Arm], list[RunUsage]] = {}
    for iteration in iterations:
        for record, _, _ in iteration.iter_runs():
            if record.status is RunStatus.COMPLETED:
                measured.setdefault((record.key.case_id, record.key.arm), []).append(record.usage)
    requests = input_tokens = output_tokens = 0.0
    count = 0
    for run in missing:
        usages = measured.get((run.key.case_id, run.key.arm))
        if usages:
            count += 1
            requests += fmean(one.requests for one in usages)
            input_tokens += fmean(one.input_tokens for one in usages)
            output_tokens += fmean(one.output_tokens for one in usages)
        else:
            requests += _REQUESTS
            input_tokens += _REQUESTS * _guess_input_tokens(plan, run)
            output_tokens += _REQUESTS * _OUTPUT_TOKENS
    tokens = round(input_tokens), round(output_tokens)
    return RunEstimate(
        runs=len(missing),
        measured=count,
        requests=round(requests),
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        cost=None if price is None else price.cost_of(*tokens),
    )


def _guess_input_tokens(plan: EvalPlan, run: PlannedRun) -> int:
    texts = [run.case.case.prompt]
    if run.key.arm is not Arm.WITHOUT_SKILL:
        texts += [
            data.decode("utf-8", "replace")
            for version in plan.get_skills(run.key.arm)
            for path, (data, _) in version.files.items()
            if path == SKILL_MD
        ]
    return _PROMPT_TOKENS + sum(map(estimate_tokens, texts))
