"""Checks of ids, texts and bundles before they are written to a skill store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.authoring.scaffold import build_skill_md
from skillhall._internal.installer.install import choose_folder_name, read_bundle_name
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import Bundle, RelativePath, fold_name
from skillhall._internal.skill.checks import slugify, suggest_name
from skillhall._internal.skill.frontmatter_locator import SKILL_MD, is_skill_md
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

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.skill.finding import Finding
    from skillhall._internal.skill.parsed import Frontmatter

USER, SYSTEM = "user", "system"
# File systems allow 255 bytes; staging a folder adds a prefix to its name.
MAX_ID_BYTES = 200
NOT_SHADOWED_HINT = "no system skill shadows a user skill with that id"
FILE_MODE, EXECUTABLE_MODE = 0o644, 0o755  # of stored files


class StoredSkill(NamedTuple):
    """Skill as the store lists it."""

    id: str
    name: str
    description: str
    source: str  # "system" or "user"
    hidden: bool = False


class PreparedSkill(NamedTuple):
    """Checked skill that is ready to be written."""

    skill: StoredSkill
    files: Mapping[str, tuple[bytes, int]]  # bytes and mode by path
    findings: tuple[JudgedFinding, ...] = ()


def parse_skill_id(text: str) -> str:
    """Return `text` as an id: one safe name in lowercase. Raises: UnsafePath."""
    if any(c in "/\\" or ord(c) < 0x20 or ord(c) == 0x7F for c in text):  # noqa: PLR2004 - ASCII
        raise UnsafePath(text, "an id must not contain slashes or control characters")
    skill_id = slugify(text)
    if not skill_id:
        raise UnsafePath(text, "an id needs a letter or a digit")
    if len(skill_id.encode("utf-8", "replace")) > MAX_ID_BYTES:
        raise UnsafePath(text, f"an id has at most {MAX_ID_BYTES} bytes")
    return RelativePath.parse(skill_id).text


def prepare_new_skill(identity: str, name: str, description: str, body: str) -> PreparedSkill:
    """Check a new skill from the fields of a form. Raises: SkillRejected."""
    label, text = name.strip(), description.rstrip()
    if len(label.splitlines()) > 1:
        raise SkillRejected(identity, ["the name contains a line break"])
    data = build_skill_md(label, text, body)
    front, findings = _parse_and_judge(identity, data, ())
    return PreparedSkill(
        _build_stored_skill(identity, front), {SKILL_MD: (data, FILE_MODE)}, findings
    )


def prepare_bundles(bundles: Sequence[Bundle], identity: str | None) -> list[PreparedSkill]:
    """Read and check bundles; all of them must be skills.

    Raises: SkillRejected, SourceRejected, UnsafePath, Conflict, and errors of reading.
    """
    if not bundles:
        raise SkillRejected("the source", [f"No {SKILL_MD} found"])
    if identity is not None and len(bundles) > 1:
        problem = f"it contains {len(bundles)} skills, but an id names only one"
        raise SourceRejected("path", "the source", problem, "import them one by one")
    prepared = [_prepare_bundle(bundle, identity) for bundle in bundles]
    taken: set[str] = set()
    for item in prepared:
        if fold_name(item.skill.id) in taken:
            raise Conflict(item.skill.id, "two skills of the source would have this id")
        taken.add(fold_name(item.skill.id))
    return prepared


def _prepare_bundle(bundle: Bundle, requested_id: str | None) -> PreparedSkill:
    identity = parse_skill_id(suggest_id(bundle) if requested_id is None else requested_id)
    files = read_files(bundle)
    skill_md = files[find_skill_md(bundle)][0]
    front, findings = _parse_and_judge(identity, skill_md, bundle.findings)
    return PreparedSkill(_build_stored_skill(identity, front), files, findings)


def read_files(bundle: Bundle) -> dict[str, tuple[bytes, int]]:
    """Read the files of a bundle, with the modes to store them with."""
    return {
        path: (file.read(), EXECUTABLE_MODE if file.executable else FILE_MODE)
        for path, file in bundle.files.items()
    }


def find_skill_md(bundle: Bundle) -> str:
    """Return the path of the SKILL.md; uppercase sorts first. Raises: SkillRejected."""
    path = min((path for path in bundle.files if is_skill_md(path)), default=None)
    if path is None:
        reasons = [finding.message for finding in bundle.findings]
        raise SkillRejected(choose_folder_name(bundle), reasons or [f"No {SKILL_MD} found"])
    return path


def find_replaced_id(
    identity: str, user_ids: Iterable[str], system_ids: Iterable[str], *, replace: bool
) -> str | None:
    """Return the user skill that this id replaces, or None. Raises: Conflict, ReadOnly."""
    user_id, system_id = _find_same_id(user_ids, identity), _find_same_id(system_ids, identity)
    if not replace and (user_id or system_id):
        raise Conflict(identity, "choose another id, or replace it by an import")
    if system_id:
        raise ReadOnly(system_id)
    return user_id


def check_deletion(
    identity: str,
    user_ids: Container[str],
    served_skills: Iterable[CatalogSkill],
    *,
    shadowed: bool,
) -> None:
    """Check that a deletion hits the intended copy of a skill.

    `user_ids` includes shadowed and broken user skills. Raises: ReadOnly, SkillNotFound.
    """
    system = {skill.id for skill in served_skills if skill.source == SYSTEM}
    is_shadowed = identity in user_ids and identity in system
    if is_shadowed and not shadowed:
        raise ReadOnly(identity, shadows=True)
    if shadowed and not is_shadowed:
        raise SkillNotFound(identity, hint=NOT_SHADOWED_HINT)


def list_names(folder: str) -> tuple[str, ...]:
    """Return the sorted names in a folder; empty if it does not exist."""
    try:
        return tuple(sorted(os.listdir(folder)))
    except OSError:
        return ()


def _find_same_id(names: Iterable[str], identity: str) -> str | None:
    """Return the name that equals `identity` on a case-insensitive file system."""
    return next((name for name in names if fold_name(name) == fold_name(identity)), None)


def suggest_id(bundle: Bundle) -> str:
    """Return the id of a bundle: from its folder, else from its name."""
    return slugify(choose_folder_name(bundle)) or suggest_name(read_bundle_name(bundle))


def _build_stored_skill(identity: str, front: Frontmatter) -> StoredSkill:
    return StoredSkill(identity, front.name, front.description, USER, front.hidden)


def _parse_and_judge(
    identity: str, data: bytes, extra_findings: Iterable[Finding]
) -> tuple[Frontmatter, tuple[JudgedFinding, ...]]:
    """Return the frontmatter and the findings not accepted. Raises: SkillRejected."""
    parsed = parse_skill(data, identity, LOCAL_SKILLS.key_case)
    judged = LOCAL_SKILLS.load_policy.judge(
        finding.with_location(f"{identity}/{finding.path or SKILL_MD}", parsed.frontmatter.name)
        for finding in (*parsed.findings, *extra_findings)
    )
    reasons = [item.finding.message for item in judged if item.effect is Effect.REJECT]
    if reasons:
        raise SkillRejected(identity, reasons)
    return parsed.frontmatter, tuple(item for item in judged if item.effect is not Effect.ACCEPT)
