"""Reader of local folders: loads the files of all prompts in a folder."""

from __future__ import annotations

import os

from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.skill_content import open_skill_bundle
from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.repo_layout import FileTree
from skillhall.errors import SkillhallError, SourceNotFound, TooLarge

MAX_TOTAL = 500 * 1024 * 1024  # bytes; the same limit as for a repository


def read_folder(folder: str, text: str) -> FileTree:
    """Read the prompts in a folder; `text` names the folder in errors.

    Raises: SourceNotFound, TooLarge.
    """
    if not os.path.isdir(folder):
        raise SourceNotFound(text, "check that the folder exists")
    catalog = load_roots([Root(folder)], PROMPT_REPOSITORY)
    findings = []
    prefix = f"{folder}{os.sep}"  # findings must not contain the absolute path
    rejected = (judged for skill in catalog.rejected for judged in skill.findings)
    for finding, _ in (*catalog.scan_findings, *rejected):
        path, message = finding.path.replace(prefix, ""), finding.message.replace(prefix, "")
        findings.append(finding._replace(path="" if path == folder else path, message=message))
    files: dict[str, bytes] = {}
    total = 0
    for skill in catalog:
        prefix = f"{skill.folder}/" if skill.folder else ""
        try:
            bundle = open_skill_bundle(skill, PROMPT_REPOSITORY.scan_policy)
            skill_files = {f"{prefix}{path}": file.read() for path, file in bundle.files.items()}
        except SkillhallError as error:  # another process is changing it
            message = f"the skill changed while it was being read: {error}"
            findings.append(Finding(Code.UNREADABLE, message, path=prefix, skill=skill.name))
            continue
        total += sum(map(len, skill_files.values()))
        if total > MAX_TOTAL:
            raise TooLarge(text, MAX_TOTAL)
        files |= skill_files
        findings += [f.with_location(f"{prefix}{f.path}", skill.name) for f in bundle.findings]
    return FileTree(files, findings=tuple(findings))
