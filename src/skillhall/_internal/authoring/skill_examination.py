"""Examination of skills: all their files are read, parsed, checked and scanned."""

from __future__ import annotations

import os
from collections.abc import Sequence
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
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, ParsedSkill
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.sources.folder.bundle_reader import (
    call_with_bundle,
    read_file_at,
)
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
    parsed = _parse_file(draft, bundle, bundle.files[SKILL_MD], profile)
    return _judge(draft, parsed, profile)


def find_problems(skills: Sequence[AnySkill], profile: Profile) -> list[Findings]:
    """Return the findings of `examine_skill` for each skill; a sixth faster."""
    # Each step runs for all skills before the next one: its code stays in the CPU caches.
    locations = [skill.folder_handle if skill.file == SKILL_MD else None for skill in skills]
    bundles = [*read_plain_bundles(locations, _MAX_BYTES_READ_AHEAD)]
    parsed = [
        None if bundle is None else _parse_plain_bundle(skill, bundle, profile)
        for skill, bundle in zip(skills, bundles, strict=True)
    ]
    return [
        _find_problems(skill, profile) if one is None else _judge(skill, one, profile)
        for skill, one in zip(skills, parsed, strict=True)
    ]


def _find_problems(skill: AnySkill, profile: Profile) -> Findings:
    # A folder without a SKILL.md has the findings of the scan.
    return examine_skill(skill, profile).findings if skill.file else skill.findings


def _parse_plain_bundle(skill: AnySkill, bundle: Bundle, profile: Profile) -> _ParsedBundle | None:
    """Parse the SKILL.md of a bundle in memory; `None` if it has been removed."""
    file = bundle.files.get(SKILL_MD)
    return None if file is None else _parse_file(skill, bundle, file, profile)


class _ParsedBundle(NamedTuple):
    """A bundle with the SKILL.md that was parsed, and findings about its links."""

    bundle: Bundle
    parsed: ParsedSkill | None  # `None` if the SKILL.md is not readable
    broken_links: tuple[Finding, ...] = ()


def _examine_bundle(skill: AnySkill, profile: Profile, bundle: Bundle) -> SkillExamination:
    one = _parse_bundle(skill, bundle, profile)
    findings = _judge(skill, one, profile)
    if one.parsed is None:
        return SkillExamination(_UNREAD_SKILL, Bundle(bundle.folder, {}), findings)
    return SkillExamination(one.parsed, bundle, findings)


def _parse_bundle(skill: AnySkill, bundle: Bundle, profile: Profile) -> _ParsedBundle:
    try:
        file = _read_skill_file(skill, bundle)
    except SkillhallError:
        return _ParsedBundle(bundle, None)
    if not is_skill_md(skill.file) or skill.file in bundle.files:
        # The scan gets the parsed bytes, even if the file has changed since.
        files = {**bundle.files, skill.file: file}
        bundle = Bundle(bundle.folder, files, bundle.findings)
    return _parse_file(skill, bundle, file, profile)


def _parse_file(
    skill: AnySkill, bundle: Bundle, file: SkillFile, profile: Profile
) -> _ParsedBundle:
    data = file.read()
    is_flat = not is_skill_md(skill.file)
    folder = None if is_flat else os.path.basename(os.path.dirname(skill.location))
    parsed = parse_skill(data, folder, profile.key_case)
    links: tuple[Finding, ...] = ()
    if parsed.body and not is_flat:
        skipped = {finding.path for finding in bundle.findings}
        links = tuple(check_references(data, bundle.files.keys() | skipped))
    return _ParsedBundle(bundle, parsed, links)


def _judge(skill: AnySkill, one: _ParsedBundle, profile: Profile) -> Findings:
    """Scan the files, and return all findings with their effects."""
    name, location = skill.name, skill.location
    directory = os.path.dirname(location)
    judge = profile.load_policy.judge
    bundle, parsed, broken_links = one
    risks = scan_bundle(bundle, EMPTY_FRONTMATTER if parsed is None else parsed.frontmatter)
    located_risks = [f.with_location(_join(directory, f.path), name) for f in risks]
    if parsed is None:
        # The scan has reported the unreadable SKILL.md; the other files may still be risky.
        return (*skill.findings, *judge(located_risks))
    judged = judge(
        [
            *[finding.with_location(location, name) for finding in parsed.findings],
            *[f.with_location(_join(directory, f.path), name) for f in bundle.findings],
            *[finding.with_location(location, name) for finding in broken_links],
            *located_risks,
        ]
    )
    codes = {finding.code for finding, _ in judged}
    return (*[known for known in skill.findings if known.finding.code not in codes], *judged)


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
