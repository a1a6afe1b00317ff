"""Measures a suggested description against the current one, and writes it if asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from skillhall._internal.catalog.skill_content import read_skill, read_skill_md
from skillhall._internal.evals.triggers.description_improvement import (
    INSTRUCTIONS,
    QueryHalves,
    build_request,
    clean_description,
    is_better,
    select_runs,
    split_queries,
)
from skillhall._internal.evals.triggers.trigger_score import TriggerScore, score_triggers
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.skill.lossless_editor import Document

if TYPE_CHECKING:
    from skillhall._internal.catalog.trust.gate import ClearedSkill
    from skillhall._internal.evals.triggers.trigger_eval import TriggerEval
    from skillhall._internal.evals.triggers.trigger_files import TriggerResult
    from skillhall._internal.evals.triggers.trigger_records import TriggerTarget


class DescriptionWriter(Protocol):
    """A model that writes texts."""

    async def write(self, instructions: str, request: str) -> str:
        """Return the reply to a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfScores:
    """The scores of one half of the queries with the current and the suggested description."""

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
        """Whether the suggestion is better for queries that its author has not seen."""
        return is_better(self.held_out.before, self.held_out.after)


async def suggest_description(
    measuring: TriggerEval, target: TriggerTarget, current: TriggerResult, writer: DescriptionWriter
) -> DescriptionImprovement:
    """Ask for a better description, measure it on both halves and return both.

    Raises: ModelUnavailable, SkillRejected, OSError.
    """
    view = measuring.skills.current_view()
    skill = view.find(target.name).skill
    halves = split_queries(target.queries)
    before = _score_halves(target, current, halves)
    others = {row.name: row.skill.description for row in view if row.name != target.name}
    body = read_skill(skill).body
    request = build_request(before[0], skill.description, body, others)
    reply = await writer.write(INSTRUCTIONS, request)
    suggested = clean_description(reply, target.name)
    result = await measuring.measure(measuring.plan(target, suggested), is_stored=False)
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
