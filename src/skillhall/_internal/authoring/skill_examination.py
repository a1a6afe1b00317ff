"""Examination of skills: all their files are read, parsed, checked and scanned."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.effects import JudgedFinding
from skillhall._internal.policy.profiles import Profile
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.finding import Finding
from skillhall._internal.skill.frontmatter_locator import (
    MAX_SKILL_MD_BYTES,
    SKILL_MD,
    is_skill_md,
)
from skillhall._internal.skill.markdown.broken_links import check_references
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, Frontmatter, ParsedSkill
from skillhall._internal.skill.parser import check_skill_md, parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.sources.folder.bundle_reader import (
    call_with_bundle,
    read_file_at,
)
from skillhall._internal.sources.folder.parsed_heads import ParsedHeads
from skillhall._internal.sources.folder.plain_bundles import read_plain_bundles
from skillhall.errors import SkillFileNotFound, SkillhallError

_MAX_BYTES_READ_AHEAD = 256 * 1024  # of one skill
_UNREAD_SKILL = ParsedSkill(EMPTY_FRONTMATTER, "", ())

Findings: TypeAlias = tuple[JudgedFinding, ...]


@dataclass(frozen=True, slots=True)
class SkillExamination:
    """A completely read skill: SKILL.md, files and findings."""

    parsed: ParsedSkill
    bundle: Bundle
    findings: Findings


class RejectedSkill(NamedTuple):
    """Location and findings of a rejected candidate, with fields like `CatalogSkill`."""

    folder_handle: FolderHandle
    file: str
    location: str
    name: str
    findings: Findings


AnySkill: TypeAlias = CatalogSkill | RejectedSkill


def examine_skill(skill: AnySkill, profile: Profile) -> SkillExamination:
    """Read all files of a skill; its findings include accepted ones."""
    if not skill.file or is_skill_md(skill.file):
        examine = partial(_examine_bundle, skill, profile)
        with suppress(SkillFileNotFound):
            return call_with_bundle(skill.folder_handle, profile.scan_policy, examine)
    return _examine_bundle(skill, profile, Bundle(skill.folder_handle.path, {}))


def examine_draft(bundle: Bundle, folder: str, profile: Profile) -> Findings:
    """Return the findings of a bundle as the skill in a folder of this name.

    They include accepted findings, as with `examine_skill`.
    """
    draft = RejectedSkill(FolderHandle(folder), SKILL_MD, f"{folder}/{SKILL_MD}", "", ())
    return _judge(
        draft, _check_file(draft, bundle, bundle.files[SKILL_MD].read(), profile), profile
    )


def find_problems(
    skills: Sequence[AnySkill], profile: Profile, parsed_heads: ParsedHeads | None = None
) -> list[Findings]:
    """Return the findings of `examine_skill` for each skill; a quarter faster.

    Heads in `parsed_heads` are not parsed again.
    """
    # Each step runs for all skills before the next one: its code stays in the CPU caches.
    locations = [skill.folder_handle if skill.file == SKILL_MD else None for skill in skills]
    bundles = [*read_plain_bundles(locations, _MAX_BYTES_READ_AHEAD)]
    checked = [
        None if bundle is None else _check_plain_bundle(skill, bundle, profile, parsed_heads)
        for skill, bundle in zip(skills, bundles, strict=True)
    ]
    return [
        _find_problems(skill, profile) if one is None else _judge(skill, one, profile)
        for skill, one in zip(skills, checked, strict=True)
    ]


def _find_problems(skill: AnySkill, profile: Profile) -> Findings:
    # A folder without a SKILL.md has the findings of the scan.
    return examine_skill(skill, profile).findings if skill.file else skill.findings


class _CheckedBundle(NamedTuple):
    """A bundle, and the SKILL.md in it, which has been checked."""

    bundle: Bundle
    frontmatter: Frontmatter | None  # `None` if the SKILL.md is not readable
    findings: tuple[Finding, ...] = ()  # of the SKILL.md
    broken_links: tuple[Finding, ...] = ()


def _check_plain_bundle(
    skill: AnySkill, bundle: Bundle, profile: Profile, parsed_heads: ParsedHeads | None
) -> _CheckedBundle | None:
    """Check the SKILL.md of a bundle in memory; `None` if it has been removed."""
    file = bundle.files.get(SKILL_MD)
    if file is None:
        return None
    return _check_file(skill, bundle, file.read(), profile, parsed_heads)


def _check_file(
    skill: AnySkill,
    bundle: Bundle,
    data: bytes,
    profile: Profile,
    parsed_heads: ParsedHeads | None = None,
) -> _CheckedBundle:
    folder = _get_folder_name(skill)
    head = None if parsed_heads is None else parsed_heads.find(data, folder)
    front, findings, body_start = check_skill_md(data, folder, profile.key_case, head)
    has_links = body_start is not None and folder is not None
    links = _check_links(bundle, data) if has_links else ()
    return _CheckedBundle(bundle, front, findings, links)


def _get_folder_name(skill: AnySkill) -> str | None:
    """Return the name of the skill's folder; `None` for a flat file."""
    if skill.file != SKILL_MD and not is_skill_md(skill.file):
        return None
    return os.path.basename(os.path.dirname(skill.location))


def _check_links(bundle: Bundle, data: bytes) -> tuple[Finding, ...]:
    files: Collection[str] = bundle.files.keys()
    if bundle.findings:
        files = {*files, *(finding.path for finding in bundle.findings)}  # skipped, but not missing
    return tuple(check_references(data, files))


def _examine_bundle(skill: AnySkill, profile: Profile, bundle: Bundle) -> SkillExamination:
    try:
        file = _read_skill_file(skill, bundle)
    except SkillhallError:
        findings = _judge(skill, _CheckedBundle(bundle, None), profile)
        return SkillExamination(_UNREAD_SKILL, Bundle(bundle.folder, {}), findings)
    if not is_skill_md(skill.file) or skill.file in bundle.files:
        # The scan gets the parsed bytes, even if the file has changed since.
        files = {**bundle.files, skill.file: file}
        bundle = Bundle(bundle.folder, files, bundle.findings)
    data, folder = file.read(), _get_folder_name(skill)
    parsed = parse_skill(data, folder, profile.key_case)
    links = _check_links(bundle, data) if parsed.body and folder is not None else ()
    checked = _CheckedBundle(bundle, parsed.frontmatter, parsed.findings, links)
    return SkillExamination(parsed, bundle, _judge(skill, checked, profile))


def _judge(skill: AnySkill, checked: _CheckedBundle, profile: Profile) -> Findings:
    """Scan the files, and return all findings with their effects."""
    bundle, front, findings, broken_links = checked
    risks = scan_bundle(bundle, EMPTY_FRONTMATTER if front is None else front)
    name, location = skill.name, skill.location
    located = [finding.with_location(location, name) for finding in findings]
    if risks or bundle.findings or broken_links:
        directory = os.path.dirname(location)
        if front is not None:
            located += [f.with_location(_join(directory, f.path), name) for f in bundle.findings]
            located += [finding.with_location(location, name) for finding in broken_links]
        located += [f.with_location(_join(directory, f.path), name) for f in risks]
    judged = profile.load_policy.judge(located)
    if front is None:
        # The scan has reported the unreadable SKILL.md; the other files may still be risky.
        return (*skill.findings, *judged)
    if not (known := skill.findings):
        return judged
    codes = [finding.code for finding in located]
    return (*[one for one in known if one.finding.code not in codes], *judged)


def _read_skill_file(skill: AnySkill, bundle: Bundle) -> SkillFile:
    """Read the SKILL.md, or the flat file, into memory. Raises: SkillhallError."""
    path = RelativePath.parse(skill.file)
    listed = bundle.files.get(skill.file)
    data = None
    if listed is not None and listed.size <= MAX_SKILL_MD_BYTES:
        with suppress(SkillhallError):
            data = listed.read()
    if data is None or len(data) > MAX_SKILL_MD_BYTES:
        data = read_file_at(skill.folder_handle, path, MAX_SKILL_MD_BYTES)
    is_executable = listed is not None and listed.executable
    return SkillFile(path, len(data), is_executable, partial(bytes, data))


def _join(directory: str, path: str) -> str:
    return os.path.join(directory, path.replace("/", os.sep)) if path else directory
