"""Checks of ids, texts and bundles before they are written to a skill store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.authoring.scaffold import build_skill_md
from skillhall._internal.hints import find_close_names
from skillhall._internal.installer.install import choose_folder_name, read_bundle_name
from skillhall._internal.installer.install_rules import NO_RULES, InstallRules
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import Bundle, RelativePath, fold_name
from skillhall._internal.skill.checks import slugify, suggest_name
from skillhall._internal.skill.frontmatter_locator import SKILL_MD, is_skill_md
from skillhall._internal.skill.lossless_editor import Document, edit_fields
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
    from collections.abc import Collection, Container, Iterable, Sequence

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.policy.trust.revocations import Revocation
    from skillhall._internal.skill.finding import Finding
    from skillhall._internal.skill_store.store import SkillFiles

USER, SYSTEM = "user", "system"
# File systems allow 255 bytes; staging a folder adds a prefix to its name.
MAX_ID_BYTES = 200
NOT_SHADOWED_HINT = "no system skill shadows a user skill with that id"
FILE_MODE, EXECUTABLE_MODE = 0o644, 0o755  # of stored files


class SkillSummary(NamedTuple):
    """Skill as a row of a list."""

    id: str
    name: str
    description: str
    source: str  # "system", "user" or "repository"
    hidden: bool = False
    repository: str = ""  # only for skills of a repository
    copies: tuple[str, ...] = ()  # ids of skills with the same text, only in search results
    revocation: Revocation | None = None  # if neither models nor installers get it


class PreparedSkill(NamedTuple):
    """Checked skill that is ready to be written."""

    skill: SkillSummary
    files: SkillFiles
    findings: tuple[JudgedFinding, ...] = ()


def parse_skill_id(text: str) -> str:
    """Return `text` as an id: one safe name in lowercase. Raises: UnsafePath."""
    if any(c in "/\\" or ord(c) < 0x20 or ord(c) == 0x7F for c in text):  # noqa: PLR2004 - ASCII
        raise UnsafePath(text, "an id must not contain slashes or control characters")
    skill_id = slugify(text)
    if not skill_id:
        raise UnsafePath(text, "an id needs at least one letter or digit")
    if len(skill_id.encode("utf-8", "replace")) > MAX_ID_BYTES:
        raise UnsafePath(text, f"an id must not be longer than {MAX_ID_BYTES} bytes")
    return RelativePath.parse(skill_id).text


def prepare_new_skill(
    identity: str,
    name: str,
    description: str,
    body: str,
    fields: Iterable[tuple[str, str]] = (),
) -> PreparedSkill:
    """Check a new skill from the fields of a form. Raises: SkillRejected, EditRefused."""
    label, text = name.strip(), description.rstrip()
    if len(label.splitlines()) > 1:
        raise SkillRejected(identity, ["the name contains a line break"])
    data = edit_fields(Document(build_skill_md(label, text, body)), fields).data
    return _prepare_skill(identity, data, {SKILL_MD: (data, FILE_MODE)})


def prepare_bundles(
    bundles: Sequence[Bundle], identity: str | None, rules: InstallRules = NO_RULES
) -> list[PreparedSkill]:
    """Read and check bundles; all of them must be skills that meet the rules.

    Raises: SkillRejected, SourceRejected, UnsafePath, Conflict, and errors from reading.
    """
    if not bundles:
        raise SkillRejected("the source", [f"No {SKILL_MD} found"])
    if identity is not None and len(bundles) > 1:
        problem = f"it contains {len(bundles)} skills, but an id can name only one"
        raise SourceRejected(
            "path", "the source", problem, "import them one at a time, or without an id"
        )
    prepared = []
    for bundle in bundles:
        skill_id = parse_skill_id(suggest_id(bundle) if identity is None else identity)
        files = read_files(bundle)
        skill_md = files[find_skill_md(bundle)][0]
        findings = (*bundle.findings, *rules.check(bundle))
        prepared.append(_prepare_skill(skill_id, skill_md, files, findings))
    taken: set[str] = set()
    for item in prepared:
        if fold_name(item.skill.id) in taken:
            raise Conflict(item.skill.id, "two skills in the source would have this id")
        taken.add(fold_name(item.skill.id))
    return prepared


def read_files(bundle: Bundle) -> dict[str, tuple[bytes, int]]:
    """Read the files of a bundle, and choose the modes to store them with."""
    return {
        path: (file.read(), EXECUTABLE_MODE if file.executable else FILE_MODE)
        for path, file in bundle.files.items()
    }


def find_skill_md(bundle: Bundle) -> str:
    """Return the path of the SKILL.md; uppercase is preferred. Raises: SkillRejected."""
    path = min((path for path in bundle.files if is_skill_md(path)), default=None)
    if path is None:
        reasons = [finding.message for finding in bundle.findings]
        raise SkillRejected(choose_folder_name(bundle), reasons or [f"No {SKILL_MD} found"])
    return path


def find_replaced_id(
    identity: str, user_ids: Iterable[str], system_ids: Iterable[str], *, replace: bool
) -> str | None:
    """Return the id of the user skill to replace; None if the id is free.

    Raises: Conflict, ReadOnly.
    """
    # Ids must also differ on case-insensitive file systems.
    folded = fold_name(identity)
    user_id, system_id = (
        next((name for name in names if fold_name(name) == folded), None)
        for names in (user_ids, system_ids)
    )
    if not replace and (user_id or system_id):
        raise Conflict(
            identity, "choose another id, or replace the existing skill by importing this one"
        )
    if system_id:
        raise ReadOnly(system_id)
    return user_id


def check_deletion(
    identity: str,
    user_ids: Collection[str],
    other_ids: Container[str],
    served_skills: Iterable[CatalogSkill],
    *,
    shadowed: bool,
) -> None:
    """Check that this is a user skill, shadowed if and only if `shadowed` is set.

    `user_ids` includes shadowed and broken user skills. Raises: ReadOnly, SkillNotFound.
    """
    system = {skill.id for skill in served_skills if skill.source == SYSTEM}
    is_shadowed = identity in user_ids and identity in system
    if is_shadowed and not shadowed:
        raise ReadOnly(identity, shadows=True)
    if shadowed and not is_shadowed:
        raise SkillNotFound(identity, hint=NOT_SHADOWED_HINT)
    if identity not in user_ids:
        if identity in other_ids:
            raise ReadOnly(identity)
        raise SkillNotFound(identity, find_close_names(identity, user_ids))


def list_names(folder: str) -> tuple[str, ...]:
    """Return the sorted names in a folder; empty if it cannot be listed."""
    try:
        return tuple(sorted(os.listdir(folder)))
    except OSError:
        return ()


def suggest_id(bundle: Bundle) -> str:
    """Suggest an id for a bundle: from its folder, else from its name."""
    return slugify(choose_folder_name(bundle)) or suggest_name(read_bundle_name(bundle))


def _prepare_skill(
    identity: str, data: bytes, files: SkillFiles, extra_findings: Iterable[Finding] = ()
) -> PreparedSkill:
    """Parse and judge a SKILL.md. Raises: SkillRejected."""
    parsed = parse_skill(data, identity, LOCAL_SKILLS.key_case)
    front = parsed.frontmatter
    judged = LOCAL_SKILLS.load_policy.judge(
        finding.with_location(f"{identity}/{finding.path or SKILL_MD}", front.name)
        for finding in (*parsed.findings, *extra_findings)
    )
    reasons = [item.finding.message for item in judged if item.effect is Effect.REJECT]
    if reasons:
        raise SkillRejected(identity, reasons)
    summary = SkillSummary(identity, front.name, front.description, USER, front.hidden)
    findings = tuple(item for item in judged if item.effect is not Effect.ACCEPT)
    return PreparedSkill(summary, files, findings)
