"""What may become a local skill: ids, texts and bundles, checked before anything is written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.authoring.scaffold import build_skill_md
from skillhall._internal.installer.preflight import choose_folder_name, read_bundle_name
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import Bundle, RelativePath, fold_name
from skillhall._internal.skill.checks import slugify, suggest_name
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall._internal.skill.parser import parse_skill
from skillhall.errors import (
    Conflict,
    ReadOnly,
    SkillNotFound,
    SkillRejected,
    SourceRejected,
    UnsafePath,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.skill.finding import Finding
    from skillhall._internal.skill.parsed import Frontmatter

USER, SYSTEM = "user", "system"
MAX_ID_BYTES = 200  # bytes; file systems take 255, and a name that is staged gets longer
NOT_SHADOWED_HINT = "no system skill shadows a user skill with that id"
_FILE_MODE, _EXECUTABLE_MODE = 0o644, 0o755


class StoredSkill(NamedTuple):
    """A skill as the run directory knows it: by its folder."""

    id: str
    name: str
    description: str
    source: str  # "system" or "user"
    hidden: bool = False  # whether no model is told about it


class PreparedSkill(NamedTuple):
    """A skill that is ready to be written."""

    skill: StoredSkill
    files: Mapping[str, tuple[bytes, int]]  # bytes and mode by path
    findings: tuple[JudgedFinding, ...] = ()


def parse_skill_id(text: str) -> str:
    """The id that `text` asks for: one safe name, in lower case. Raises: UnsafePath."""
    if any(c in "/\\" or ord(c) < 0x20 or ord(c) == 0x7F for c in text):  # noqa: PLR2004 - ASCII
        raise UnsafePath(text, "an id is one name, without slashes and control characters")
    found = slugify(text)
    if not found:
        raise UnsafePath(text, "an id needs a letter or a digit")
    if len(found.encode("utf-8", "replace")) > MAX_ID_BYTES:
        raise UnsafePath(text, f"an id has at most {MAX_ID_BYTES} bytes")
    return RelativePath.parse(found).text


def prepare_new_skill(identity: str, name: str, description: str, body: str) -> PreparedSkill:
    """A new skill from the fields of a form. Raises: SkillRejected."""
    label, text = name.strip(), description.rstrip()
    if len(label.splitlines()) > 1:
        raise SkillRejected(identity, ["a name is one line; this one has a line break"])
    data = build_skill_md(label, text, body)
    front, findings = _parse_and_judge(identity, data, ())
    return PreparedSkill(
        _build_stored_skill(identity, front), {SKILL_MD: (data, _FILE_MODE)}, findings
    )


def prepare_bundles(bundles: Sequence[Bundle], identity: str | None) -> list[PreparedSkill]:
    """The bundles, if all of them are skills, each with its bytes.

    Raises: SkillRejected, SourceRejected, UnsafePath, Conflict, and what reading raises.
    """
    if not bundles:
        raise SkillRejected("the source", [f"No {SKILL_MD} found"])
    if identity is not None and len(bundles) > 1:
        problem = f"it holds {len(bundles)} skills, and an id names one"
        raise SourceRejected("path", "the source", problem, "import them one by one")
    prepared = [_prepare_bundle(bundle, identity) for bundle in bundles]
    taken: set[str] = set()
    for one in prepared:
        if fold_name(one.skill.id) in taken:
            raise Conflict(one.skill.id, "two skills of the source would have this id")
        taken.add(fold_name(one.skill.id))
    return prepared


def _prepare_bundle(bundle: Bundle, requested_id: str | None) -> PreparedSkill:
    identity = parse_skill_id(suggest_id(bundle) if requested_id is None else requested_id)
    files = {
        path: (file.read(), _EXECUTABLE_MODE if file.executable else _FILE_MODE)
        for path, file in bundle.files.items()
    }
    own = find_skill_md(bundle)
    front, findings = _parse_and_judge(identity, files[own][0], bundle.findings)
    return PreparedSkill(_build_stored_skill(identity, front), files, findings)


def find_skill_md(bundle: Bundle) -> str:
    """The path of the bundle's SKILL.md; capitals come first. Raises: SkillRejected."""
    own = min((path for path in bundle.files if is_skill_md(path)), default=None)
    if own is None:
        reasons = [found.message for found in bundle.findings]
        raise SkillRejected(choose_folder_name(bundle), reasons or [f"No {SKILL_MD} found"])
    return own


def find_replaced_id(
    identity: str, user_ids: Iterable[str], system_ids: Iterable[str], *, replace: bool
) -> str | None:
    """The user skill that one with this id replaces, if it may. Raises: Conflict, ReadOnly."""
    mine, theirs = _find_same_id(user_ids, identity), _find_same_id(system_ids, identity)
    if not replace and (mine or theirs):
        raise Conflict(identity, "choose another id, or replace it by an import")
    if theirs:
        raise ReadOnly(theirs)
    return mine


def check_deletion(
    identity: str, user_ids: Container[str], served_skills: Iterable[Skill], *, shadowed: bool
) -> None:
    """See that a deletion means the copy it would remove, also a broken one.

    `own` are the ids of all user skills, `served` what agents get. Raises: ReadOnly, SkillNotFound.
    """
    system = {skill.id for skill in served_skills if skill.source == SYSTEM}
    is_shadowed = identity in user_ids and identity in system
    if is_shadowed and not shadowed:
        raise ReadOnly(identity, shadows=True)
    if shadowed and not is_shadowed:
        raise SkillNotFound(identity, hint=NOT_SHADOWED_HINT)


def list_names(folder: str) -> tuple[str, ...]:
    """The names in a folder, in order; none if it is not there."""
    try:
        return tuple(sorted(os.listdir(folder)))
    except OSError:
        return ()


def _find_same_id(names: Iterable[str], identity: str) -> str | None:
    """The name that is the same as `identity` on some system."""
    return next((name for name in names if fold_name(name) == fold_name(identity)), None)


def suggest_id(bundle: Bundle) -> str:
    """The id a bundle brings along: after its folder, else after its name."""
    return slugify(choose_folder_name(bundle)) or suggest_name(read_bundle_name(bundle))


def _build_stored_skill(identity: str, front: Frontmatter) -> StoredSkill:
    return StoredSkill(identity, front.name, front.description, USER, front.hidden)


def _parse_and_judge(
    identity: str, data: bytes, extra_findings: Iterable[Finding]
) -> tuple[Frontmatter, tuple[JudgedFinding, ...]]:
    """The frontmatter, and what is worth telling. Raises: SkillRejected."""
    parsed = parse_skill(data, identity, LOCAL_SKILLS.key_case)
    judged = LOCAL_SKILLS.load_policy.judge(
        found.with_location(f"{identity}/{found.path or SKILL_MD}", parsed.frontmatter.name)
        for found in (*parsed.findings, *extra_findings)
    )
    reasons = [one.finding.message for one in judged if one.effect is Effect.REJECT]
    if reasons:
        raise SkillRejected(identity, reasons)
    told = tuple(one for one in judged if one.effect is not Effect.ACCEPT)
    return parsed.frontmatter, told
