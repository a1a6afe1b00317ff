"""Measures a suggested description against the current one; can write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.catalog.skill_content import read_skill, read_skill_md
from skillhall._internal.evals.eval_records import RunStatus
from skillhall._internal.evals.triggers.description_improvement import (
    INSTRUCTIONS,
    QueryHalves,
    build_request,
    clean_description,
    is_better,
    select_runs,
    split_queries,
)
from skillhall._internal.evals.triggers.trigger_records import TriggerReply, TriggerRun
from skillhall._internal.evals.triggers.trigger_score import TriggerScore, score_triggers
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.skill.lossless_editor import Document
from skillhall._internal.skill.token_count import estimate_tokens

if TYPE_CHECKING:
    from skillhall._internal.catalog.trust.gate import ClearedSkill
    from skillhall._internal.evals.eval_records import RunUsage
    from skillhall._internal.evals.triggers.trigger_eval import TriggerEval, TriggerPlan
    from skillhall._internal.evals.triggers.trigger_files import TriggerResult
    from skillhall._internal.evals.triggers.trigger_records import TriggerTarget


class DescriptionReply(Protocol):
    """The reply of a model, and its usage."""

    @property
    def text(self) -> str:
        """The suggested description."""

    @property
    def usage(self) -> RunUsage:
        """The usage of the request."""


class DescriptionWriter(Protocol):
    """A model that writes texts."""

    async def ask(self, instructions: str, request: str) -> DescriptionReply:
        """Return the reply to a request."""


class ImprovementEstimate(NamedTuple):
    """Numbers of requests for a suggestion and for all runs that measure it."""

    requests: int
    input_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfScores:
    """Scores of one half of the queries, with the current and suggested description."""

    before: TriggerScore
    after: TriggerScore


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionImprovement:
    """A suggested description, with the scores before and after."""

    skill: str
    current: str
    suggested: str
    halves: QueryHalves
    training: HalfScores
    held_out: HalfScores

    @property
    def is_better(self) -> bool:
        """Whether the suggestion is better for the held-out queries."""
        return is_better(self.held_out.before, self.held_out.after)


def estimate_improvement(measuring: TriggerEval, plan: TriggerPlan) -> ImprovementEstimate:
    """Estimate the requests for a better description. Raises: SkillhallError."""
    reply = TriggerReply(status=RunStatus.COMPLETED)
    training = [
        TriggerRun(query=query, repeat=1, digest="", reply=reply)
        for query in split_queries(plan.target.queries).training
    ]
    request = _build_request(measuring, score_triggers(plan.target.name, training))
    tokens = estimate_tokens(f"{INSTRUCTIONS}\n{request}")
    tokens += plan.estimate_input_tokens(only_new=False)
    return ImprovementEstimate(1 + len(plan.runs), tokens)


async def suggest_description(
    measuring: TriggerEval, target: TriggerTarget, current: TriggerResult, writer: DescriptionWriter
) -> DescriptionImprovement | None:
    """Ask for a better description, measure it on both halves and return both.

    Returns `None` if a limit stopped the runs. Raises: ModelUnavailable, SkillRejected, OSError.
    """
    skill = measuring.skills.current_view().find(target.name).skill
    halves = split_queries(target.queries)
    before = _score_halves(target, current, halves)
    reply = await writer.ask(INSTRUCTIONS, _build_request(measuring, before[0]))
    measuring.spend(target.name, reply.usage)
    suggested = clean_description(reply.text, target.name)
    result = await measuring.measure(measuring.plan(target, suggested), is_stored=False)
    if measuring.problem:
        return None
    after = _score_halves(target, result, halves)
    training, held_out = (
        HalfScores(before=old, after=new) for old, new in zip(before, after, strict=True)
    )
    return DescriptionImprovement(
        skill=target.name,
        current=skill.description,
        suggested=suggested,
        halves=halves,
        training=training,
        held_out=held_out,
    )


def _build_request(measuring: TriggerEval, training: TriggerScore) -> str:
    view = measuring.skills.current_view()
    skill = view.find(training.skill).skill
    others = {row.name: row.skill.description for row in view if row.name != training.skill}
    return build_request(training, skill.description, read_skill(skill).body, others)


def write_description(skill: ClearedSkill, description: str) -> None:
    """Replace the description in a SKILL.md; all other bytes stay the same.

    Raises: EditRefused, SkillhallError, OSError.
    """
    document = Document(read_skill_md(skill)).with_field("description", description)
    with WritableFolder(skill.directory) as folder:
        folder.write_file(skill.file, document.data, folder.mode(skill.file))


def _score_halves(
    target: TriggerTarget, result: TriggerResult, halves: QueryHalves
) -> tuple[TriggerScore, TriggerScore]:
    training, held_out = (
        score_triggers(target.name, select_runs(result.runs, half)) for half in halves
    )
    return training, held_out
