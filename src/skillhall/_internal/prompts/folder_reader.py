"""Folders of this machine as trees: what a scan of them accepts, read at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.reader import open_skill_bundle
from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.repo_layout import FileTree
from skillhall.errors import SkillhallError, SourceNotFound, TooLarge

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Skill

MAX_TOTAL = 500 * 1024 * 1024  # bytes, as of a repository


def read_folder(folder: str, text: str) -> FileTree:
    """The prompts in a folder; `text` names it. Raises: SourceNotFound, TooLarge."""
    if not os.path.isdir(folder):
        raise SourceNotFound(text, "check the folder")
    catalog = load_roots([Root(folder)], PROMPT_REPOSITORY)
    judged = [*catalog.scan_findings, *(one for lost in catalog.rejected for one in lost.findings)]
    findings = [_to_relative_finding(folder, one.finding) for one in judged]
    files: dict[str, bytes] = {}
    total = 0
    for skill in catalog:
        more, noticed = _read_skill_files(skill)
        total += sum(map(len, more.values()))
        if total > MAX_TOTAL:
            raise TooLarge(text, MAX_TOTAL)
        files |= more
        findings += noticed
    return FileTree(files, findings=tuple(findings))


def _read_skill_files(skill: Skill) -> tuple[dict[str, bytes], list[Finding]]:
    """The files of one skill, whole or not at all, and what was noticed, by paths in the folder."""
    start = f"{skill.folder}/" if skill.folder else ""
    try:
        bundle = open_skill_bundle(skill, PROMPT_REPOSITORY.scan_policy)
        files = {f"{start}{path}": file.read() for path, file in bundle.files.items()}
    except SkillhallError as error:  # somebody is at work there
        message = f"it changed while it was read: {error}"
        return {}, [Finding(Code.UNREADABLE, message, path=start, skill=skill.name)]
    return files, [one.with_location(f"{start}{one.path}", skill.name) for one in bundle.findings]


def _to_relative_finding(folder: str, finding: Finding) -> Finding:
    """The finding without the place of the folder on this machine."""
    start = f"{folder}{os.sep}"
    path, message = finding.path.replace(start, ""), finding.message.replace(start, "")
    return finding._replace(path="" if path == folder else path, message=message)
