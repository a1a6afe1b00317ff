"""Drafts: what a skill would be, and what would be said about it, before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.installer.preflight import bundle_of
from skillhall._internal.policy.effects import Effect, Judged
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import folded
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.merge import FileState
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill_store.input_checks import (
    LocalSkill,
    checked_id,
    prepare_all,
    prepare_new,
)
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from skillhall._internal.skill.edit import SkillText


@dataclass(frozen=True, slots=True)
class Draft:
    """A skill that is not written yet."""

    id: str  # "" if none can be made of what was given
    problems: tuple[str, ...]  # why it cannot be written
    is_taken: bool  # whether a skill has the id
    findings: tuple[Judged, ...]
    tokens: int
    item: LocalSkill | None = None  # as the run directory would know it
    data: bytes = b""  # the SKILL.md


def draft(identity: str, text: SkillText, taken: Container[str] = ()) -> Draft:
    """What these words would make; `taken` holds the folded ids that are in use."""
    try:
        safe = checked_id(identity)
    except SkillhallError as error:
        return _refused("", error)

    def write() -> bytes:
        return prepare_new(safe, text.name, text.description, text.body).files[SKILL_MD][0]

    return draft_of(safe, write, is_taken=folded(safe) in taken)


def draft_of(identity: str, write: Callable[[], bytes], *, is_taken: bool = False) -> Draft:
    """What a SKILL.md would be that `write` makes, or why there would be none."""
    try:
        data = write()
        alone = bundle_of(identity, {SKILL_MD: FileState(data, executable=False)})
        item = prepare_all([alone], identity)[0].item
    except SkillhallError as error:
        return _refused(identity, error, is_taken=is_taken)
    tokens = estimate_tokens(parse_skill(data).body)
    found = judged_text(identity, data)
    return Draft(identity, (), is_taken, found, tokens, item, data)


def judged_text(identity: str, data: bytes) -> tuple[Judged, ...]:
    """What is worth telling about a SKILL.md, risks included, by lines."""
    parsed = parse_skill(data, identity, LOCAL_SKILLS.keys)
    alone = bundle_of(identity, {SKILL_MD: FileState(data, executable=False)})
    found = (*parsed.findings, *scan_bundle(alone, parsed.frontmatter))
    judged = LOCAL_SKILLS.load.judge(one.at(one.path or SKILL_MD) for one in found)
    return tuple(one for one in judged if one.effect is not Effect.ACCEPT)


def _refused(identity: str, error: SkillhallError, *, is_taken: bool = False) -> Draft:
    problems = getattr(error, "reasons", None) or (str(error),)
    return Draft(identity, tuple(problems), is_taken, (), 0)
