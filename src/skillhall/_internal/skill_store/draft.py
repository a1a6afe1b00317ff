"""Drafts: what a skill would be, and what would be said about it, before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.installer.preflight import build_bundle
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import fold_name
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.merge import FileState
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill_store.input_checks import (
    StoredSkill,
    parse_skill_id,
    prepare_bundles,
    prepare_new_skill,
)
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from skillhall._internal.skill.edit import SkillText


@dataclass(frozen=True, slots=True)
class SkillDraft:
    """A skill that is not written yet."""

    id: str  # "" if none can be made of what was given
    problems: tuple[str, ...]  # why it cannot be written
    is_taken: bool  # whether a skill has the id
    findings: tuple[JudgedFinding, ...]
    tokens: int
    skill: StoredSkill | None = None  # as the run directory would know it
    data: bytes = b""  # the SKILL.md


def draft_skill(identity: str, text: SkillText, taken_ids: Container[str] = ()) -> SkillDraft:
    """What these words would make; `taken` holds the folded ids that are in use."""
    try:
        safe = parse_skill_id(identity)
    except SkillhallError as error:
        return _build_rejected_draft("", error)

    def write() -> bytes:
        return prepare_new_skill(safe, text.name, text.description, text.body).files[SKILL_MD][0]

    return draft_skill_md(safe, write, is_taken=fold_name(safe) in taken_ids)


def draft_skill_md(
    identity: str, write: Callable[[], bytes], *, is_taken: bool = False
) -> SkillDraft:
    """What a SKILL.md would be that `write` makes, or why there would be none."""
    try:
        data = write()
        alone = build_bundle(identity, {SKILL_MD: FileState(data, executable=False)})
        item = prepare_bundles([alone], identity)[0].skill
    except SkillhallError as error:
        return _build_rejected_draft(identity, error, is_taken=is_taken)
    tokens = estimate_tokens(parse_skill(data).body)
    found = judge_skill_md(identity, data)
    return SkillDraft(identity, (), is_taken, found, tokens, item, data)


def judge_skill_md(identity: str, data: bytes) -> tuple[JudgedFinding, ...]:
    """What is worth telling about a SKILL.md, risks included, by lines."""
    parsed = parse_skill(data, identity, LOCAL_SKILLS.key_case)
    alone = build_bundle(identity, {SKILL_MD: FileState(data, executable=False)})
    found = (*parsed.findings, *scan_bundle(alone, parsed.frontmatter))
    judged = LOCAL_SKILLS.load_policy.judge(
        one.with_location(one.path or SKILL_MD) for one in found
    )
    return tuple(one for one in judged if one.effect is not Effect.ACCEPT)


def _build_rejected_draft(
    identity: str, error: SkillhallError, *, is_taken: bool = False
) -> SkillDraft:
    problems = getattr(error, "reasons", None) or (str(error),)
    return SkillDraft(identity, tuple(problems), is_taken, (), 0)
