"""What may become a local skill: ids, texts and bundles, checked before anything is written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.authoring.scaffold import new_skill_md
from skillhall._internal.installer.preflight import folder_of, name_of
from skillhall._internal.policy.effects import Effect, Judged
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import Bundle, RelativePath, folded
from skillhall._internal.skill.checks import slug, suggest_name
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
MAX_ID = 200  # bytes; file systems take 255, and a name that is staged gets longer
NOT_SHADOWED = "no system skill shadows a user skill with that id"
_FILE, _PROGRAM = 0o644, 0o755


class LocalSkill(NamedTuple):
    """A skill as the run directory knows it: by its folder."""

    id: str
    name: str
    description: str
    source: str  # "system" or "user"
    hidden: bool = False  # whether no model is told about it


class Prepared(NamedTuple):
    """A skill that is ready to be written."""

    item: LocalSkill
    files: Mapping[str, tuple[bytes, int]]  # bytes and mode by path
    findings: tuple[Judged, ...] = ()


def checked_id(text: str) -> str:
    """The id that `text` asks for: one safe name, in lower case. Raises: UnsafePath."""
    if any(c in "/\\" or ord(c) < 0x20 or ord(c) == 0x7F for c in text):  # noqa: PLR2004 - ASCII
        raise UnsafePath(text, "an id is one name, without slashes and control characters")
    found = slug(text)
    if not found:
        raise UnsafePath(text, "an id needs a letter or a digit")
    if len(found.encode("utf-8", "replace")) > MAX_ID:
        raise UnsafePath(text, f"an id has at most {MAX_ID} bytes")
    return RelativePath.parse(found).text


def prepare_new(identity: str, name: str, description: str, body: str) -> Prepared:
    """A new skill from the fields of a form. Raises: SkillRejected."""
    label, text = name.strip(), description.rstrip()
    if len(label.splitlines()) > 1:
        raise SkillRejected(identity, ["a name is one line; this one has a line break"])
    data = new_skill_md(label, text, body)
    front, findings = _judged(identity, data, ())
    return Prepared(_item(identity, front), {SKILL_MD: (data, _FILE)}, findings)


def prepare_all(bundles: Sequence[Bundle], identity: str | None) -> list[Prepared]:
    """The bundles, if all of them are skills, each with its bytes.

    Raises: SkillRejected, SourceRejected, UnsafePath, Conflict, and what reading raises.
    """
    if not bundles:
        raise SkillRejected("the source", [f"No {SKILL_MD} found"])
    if identity is not None and len(bundles) > 1:
        problem = f"it holds {len(bundles)} skills, and an id names one"
        raise SourceRejected("path", "the source", problem, "import them one by one")
    prepared = [_prepare(bundle, identity) for bundle in bundles]
    taken: set[str] = set()
    for one in prepared:
        if folded(one.item.id) in taken:
            raise Conflict(one.item.id, "two skills of the source would have this id")
        taken.add(folded(one.item.id))
    return prepared


def _prepare(bundle: Bundle, given: str | None) -> Prepared:
    identity = checked_id(own_id(bundle) if given is None else given)
    files = {
        path: (file.read(), _PROGRAM if file.executable else _FILE)
        for path, file in bundle.files.items()
    }
    own = skill_md_of(bundle)
    front, findings = _judged(identity, files[own][0], bundle.findings)
    return Prepared(_item(identity, front), files, findings)


def skill_md_of(bundle: Bundle) -> str:
    """The path of the bundle's SKILL.md; capitals come first. Raises: SkillRejected."""
    own = min((path for path in bundle.files if is_skill_md(path)), default=None)
    if own is None:
        reasons = [found.message for found in bundle.findings]
        raise SkillRejected(folder_of(bundle), reasons or [f"No {SKILL_MD} found"])
    return own


def place_of(
    identity: str, own: Iterable[str], system: Iterable[str], *, replace: bool
) -> str | None:
    """The user skill that one with this id replaces, if it may. Raises: Conflict, ReadOnly."""
    mine, theirs = _same(own, identity), _same(system, identity)
    if not replace and (mine or theirs):
        raise Conflict(identity, "choose another id, or replace it by an import")
    if theirs:
        raise ReadOnly(theirs)
    return mine


def refuse_other_copy(
    identity: str, own: Container[str], served: Iterable[Skill], *, shadowed: bool
) -> None:
    """See that a deletion means the copy it would remove, also a broken one.

    `own` are the ids of all user skills, `served` what agents get. Raises: ReadOnly, SkillNotFound.
    """
    system = {skill.id for skill in served if skill.source == SYSTEM}
    is_shadowed = identity in own and identity in system
    if is_shadowed and not shadowed:
        raise ReadOnly(identity, shadows=True)
    if shadowed and not is_shadowed:
        raise SkillNotFound(identity, hint=NOT_SHADOWED)


def names_in(folder: str) -> tuple[str, ...]:
    """The names in a folder, in order; none if it is not there."""
    try:
        return tuple(sorted(os.listdir(folder)))
    except OSError:
        return ()


def _same(names: Iterable[str], identity: str) -> str | None:
    """The name that is the same as `identity` on some system."""
    return next((name for name in names if folded(name) == folded(identity)), None)


def own_id(bundle: Bundle) -> str:
    """The id a bundle brings along: after its folder, else after its name."""
    return slug(folder_of(bundle)) or suggest_name(name_of(bundle))


def _item(identity: str, front: Frontmatter) -> LocalSkill:
    return LocalSkill(identity, front.name, front.description, USER, front.hidden)


def _judged(
    identity: str, data: bytes, more: Iterable[Finding]
) -> tuple[Frontmatter, tuple[Judged, ...]]:
    """The frontmatter, and what is worth telling. Raises: SkillRejected."""
    parsed = parse_skill(data, identity, LOCAL_SKILLS.keys)
    judged = LOCAL_SKILLS.load.judge(
        found.at(f"{identity}/{found.path or SKILL_MD}", parsed.frontmatter.name)
        for found in (*parsed.findings, *more)
    )
    reasons = [one.finding.message for one in judged if one.effect is Effect.REJECT]
    if reasons:
        raise SkillRejected(identity, reasons)
    told = tuple(one for one in judged if one.effect is not Effect.ACCEPT)
    return parsed.frontmatter, told
