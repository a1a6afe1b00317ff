"""Drafts: unsaved skills with the findings that saving them would produce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.authoring.skill_examination import examine_draft
from skillhall._internal.installer.install import build_bundle
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LOCAL_SKILLS, PROFILES, SPECIFICATION
from skillhall._internal.skill.bundle import fold_name
from skillhall._internal.skill.checks import MAX_DESCRIPTION_LENGTH
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.merge import FileState
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill_store.input_checks import (
    EXECUTABLE_MODE,
    SkillSummary,
    find_skill_md,
    parse_skill_id,
    prepare_bundles,
    prepare_new_skill,
)
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.lossless_editor import SkillText
    from skillhall._internal.skill_store.store import SkillFiles


DraftFix: TypeAlias = Literal["name", "length", "quoting"]
_FIXED_CODES: Mapping[DraftFix, frozenset[Code]] = {
    "name": frozenset(
        {
            Code.NAME_TOO_LONG,
            Code.NAME_UPPERCASE,
            Code.NAME_CHARACTERS,
            Code.NAME_MARKS,
            Code.NAME_EDGE_HYPHEN,
            Code.NAME_DOUBLE_HYPHEN,
            Code.NAME_NOT_FOLDER,
        }
    ),
    "length": frozenset({Code.DESCRIPTION_TOO_LONG}),
    "quoting": frozenset({Code.YAML_REPAIRED}),
}


class ProfileVerdict(NamedTuple):
    """What the agents of a profile would do with a skill."""

    profile: str
    effect: Effect
    findings: tuple[JudgedFinding, ...]  # the reasons, unless it is accepted


@dataclass(frozen=True, slots=True)
class SkillDraft:
    """Skill that has not been saved yet."""

    id: str  # "" if the input gives no valid id
    problems: tuple[str, ...]  # reasons why it cannot be saved
    is_taken: bool  # whether another skill has this id
    findings: tuple[JudgedFinding, ...]
    tokens: int
    skill: SkillSummary | None = None  # as the store would list it
    data: bytes = b""  # the SKILL.md
    validation: tuple[JudgedFinding, ...] = ()  # what `skillhall validate` would report
    verdicts: tuple[ProfileVerdict, ...] = ()  # of every profile

    @property
    def is_valid(self) -> bool:
        """Whether `skillhall validate` accepts the skill."""
        return not self.problems and not any(
            judged.effect is Effect.REJECT for judged in self.validation
        )

    @property
    def fixes(self) -> tuple[DraftFix, ...]:
        """The fixes that `fix_text` has for the reasons why it is not valid."""
        codes = {row.finding.code for row in self.validation if row.effect is Effect.REJECT}
        is_named = self.skill is not None and self.skill.name == self.id
        return tuple(
            fix
            for fix, fixed in _FIXED_CODES.items()
            if codes & fixed and not (fix == "name" and is_named)
        )


def draft_skill(identity: str, text: SkillText, taken_ids: Container[str] = ()) -> SkillDraft:
    """Build the draft of a new skill; fold `taken_ids` with `fold_name` first."""
    try:
        skill_id = parse_skill_id(identity)
    except SkillhallError as error:
        return SkillDraft("", list_reasons(error), is_taken=False, findings=(), tokens=0)

    def write() -> bytes:
        new = prepare_new_skill(skill_id, *text)
        return new.files[SKILL_MD][0]

    return draft_skill_md(skill_id, write, is_taken=fold_name(skill_id) in taken_ids)


def draft_skill_md(
    identity: str,
    write: Callable[[], bytes],
    *,
    is_taken: bool = False,
    present: Bundle | None = None,
) -> SkillDraft:
    """Build the draft of the SKILL.md that `write` returns.

    If the skill is rejected, the draft contains only the problems. `present` has the other files
    of the skill.
    """
    try:
        data = write()
        bundle = build_bundle(identity, {SKILL_MD: FileState(data, executable=False)})
        skill = prepare_bundles([bundle], identity)[0].skill
    except SkillhallError as error:
        return SkillDraft(identity, list_reasons(error), is_taken, (), 0)
    tokens = estimate_tokens(parse_skill(data).body)
    findings = judge_skill_md(identity, data)
    files = {} if present is None else present.files
    complete = replace(bundle, files={**files, SKILL_MD: bundle.files[SKILL_MD]})
    examined = examine_draft(complete, identity, SPECIFICATION)
    validation = tuple(row for row in examined if row.effect is not Effect.ACCEPT)
    verdicts = tuple(_judge_by_profile(complete, identity))
    return SkillDraft(identity, (), is_taken, findings, tokens, skill, data, validation, verdicts)


def _judge_by_profile(bundle: Bundle, identity: str) -> Iterator[ProfileVerdict]:
    for profile in PROFILES.values():
        findings = examine_draft(bundle, identity, profile)
        effects = {row.effect for row in findings}
        effect = next((one for one in (Effect.REJECT, Effect.WARN) if one in effects), None)
        reasons = tuple(row for row in findings if row.effect is effect)
        yield ProfileVerdict(profile.name, effect or Effect.ACCEPT, reasons)


def fix_text(text: SkillText, fix: str, identity: str) -> SkillText:
    """Apply a fix to the text of a form; `identity` is the id of the skill.

    A fix of the YAML changes the file, not the text: see `SkillStoreChanges.edit`.
    """
    if fix == "name":
        return text._replace(name=identity)
    if fix == "length" and len(text.description) > MAX_DESCRIPTION_LENGTH:
        short = text.description[:MAX_DESCRIPTION_LENGTH]
        end = max(short.rfind(mark) for mark in (". ", "! ", "? ", "\n", "。"))
        cut = short[: end + 1] if end > 0 else short.rpartition(" ")[0] or short
        return text._replace(description=cut.rstrip())
    return text


def draft_files(identity: str, compute: Callable[[], SkillFiles]) -> SkillDraft:
    """Build the draft of a skill with the files that `compute` returns.

    If the skill is rejected, the draft contains only the problems.
    """
    try:
        states = {
            path: FileState(data, mode == EXECUTABLE_MODE)
            for path, (data, mode) in compute().items()
        }
        bundle = build_bundle(identity, states)
        skill = prepare_bundles([bundle], identity)[0].skill
    except SkillhallError as error:
        return SkillDraft(identity, list_reasons(error), is_taken=False, findings=(), tokens=0)
    data = states[find_skill_md(bundle)].data
    tokens = estimate_tokens(parse_skill(data).body)
    findings = _judge_bundle(identity, data, bundle)
    return SkillDraft(identity, (), is_taken=False, findings=findings, tokens=tokens, skill=skill)


def judge_skill_md(identity: str, data: bytes) -> tuple[JudgedFinding, ...]:
    """Return the findings of a SKILL.md that are not accepted, including risks."""
    bundle = build_bundle(identity, {SKILL_MD: FileState(data, executable=False)})
    return _judge_bundle(identity, data, bundle)


def _judge_bundle(identity: str, data: bytes, bundle: Bundle) -> tuple[JudgedFinding, ...]:
    parsed = parse_skill(data, identity, LOCAL_SKILLS.key_case)
    findings = (*parsed.findings, *scan_bundle(bundle, parsed.frontmatter))
    judged = LOCAL_SKILLS.load_policy.judge(f.with_location(f.path or SKILL_MD) for f in findings)
    return tuple(finding for finding in judged if finding.effect is not Effect.ACCEPT)


def list_reasons(error: SkillhallError) -> tuple[str, ...]:
    """Return the reasons for a rejection, one line each."""
    return tuple(getattr(error, "reasons", None) or (str(error),))
