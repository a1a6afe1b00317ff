"""Checks before skills are installed, and installation into a plain folder."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.lock import compute_files_digest, to_locked_files
from skillhall._internal.installer.project import check_replaceable, read_installed_folder
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile, fold_name
from skillhall._internal.skill.checks import suggest_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall.errors import SkillNotInSource, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.skill.merge import FileState
    from skillhall._internal.skill.parsed import Frontmatter

_FILE_MODE, _EXECUTABLE_MODE = 0o644, 0o755


@dataclass(frozen=True, slots=True)
class AddedSkill:
    """A skill that passed the checks, before or after it is written."""

    id: str  # name of its folder
    name: str
    path: str
    digest: str
    bundle: Bundle


@dataclass(frozen=True, slots=True)
class SkippedSkill:
    """A skill that was not added, with the reason."""

    id: str
    name: str
    reason: str  # "exists" or "rejected"


@dataclass(slots=True)
class AddReport:
    """Added and skipped skills, with findings."""

    added: list[AddedSkill] = field(default_factory=list)
    skipped: list[SkippedSkill] = field(default_factory=list)
    findings: list[JudgedFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # further messages for the user


def select_bundles(bundles: Sequence[Bundle], names: Iterable[str]) -> list[Bundle]:
    """Return the bundles with these names or folder names; all if `names` is empty.

    Raises: SkillNotFound.
    """
    names = list(names)
    if not names:
        return list(bundles)
    by_name: dict[str, Bundle] = {}
    for bundle in bundles:
        by_name |= dict.fromkeys((choose_folder_name(bundle), read_bundle_name(bundle)), bundle)
    for name in names:
        if name not in by_name:
            raise SkillNotInSource(name, get_close_matches(name, by_name))
    return [by_name[name] for name in dict.fromkeys(names)]


def add_to_folder(
    bundles: Iterable[Bundle], folder: str, *, overwrite: bool = False, dry_run: bool = False
) -> AddReport:
    """Write the bundles into `folder`, which is created if missing.

    Existing skills are skipped unless `overwrite`.
    Raises: UnsavedFilesError, NotASkill, OSError.
    """
    report = AddReport()
    ready = preflight_bundles(bundles, folder, report)
    if dry_run:
        for addition in ready:
            is_added = overwrite or not os.path.lexists(addition.path)
            report_addition(addition, report, is_added=is_added)
        return report
    if ready:
        os.makedirs(folder, exist_ok=True)
        with WritableFolder(folder) as target, target.lock():
            target.recover()
            for addition in ready:
                is_added = _write_skill(target, addition, overwrite=overwrite)
                report_addition(addition, report, is_added=is_added)
    return report


def preflight_bundles(
    bundles: Iterable[Bundle], folder: str, report: AddReport
) -> list[AddedSkill]:
    """Return the bundles that can be added to `folder`; report all findings."""
    checked = (_check_bundle(bundle, folder, report) for bundle in bundles)
    return _drop_duplicate_ids([skill for skill in checked if skill is not None], report)


def _check_bundle(bundle: Bundle, folder: str, report: AddReport) -> AddedSkill | None:
    """Return the skill if the lenient profile accepts it; report its findings."""
    file = _find_skill_md(bundle)
    if file is None and not LENIENT.load_policy.accepts(bundle.findings):
        findings: tuple[Finding, ...] = ()  # the findings of the bundle explain the missing file
    elif file is None:
        findings = (Finding(Code.NO_SKILL_MD, f"No {SKILL_MD} found", 1),)
    else:
        parsed = parse_skill(file.read(), choose_folder_name(bundle))
        findings = (*parsed.findings, *scan_bundle(bundle, parsed.frontmatter))
    skill_id, name = choose_folder_name(bundle), read_bundle_name(bundle)
    judged_findings = LENIENT.load_policy.judge(
        finding.with_location(f"{skill_id}/{finding.path or SKILL_MD}", name)
        for finding in (*findings, *bundle.findings)
    )
    report.findings += [j for j in judged_findings if j.effect is not Effect.ACCEPT]
    if any(judged.effect is Effect.REJECT for judged in judged_findings):
        report.skipped.append(SkippedSkill(skill_id, name, "rejected"))
        return None
    path = os.path.join(folder, skill_id)
    return AddedSkill(skill_id, name, path, compute_bundle_digest(bundle), bundle)


def _drop_duplicate_ids(additions: list[AddedSkill], report: AddReport) -> list[AddedSkill]:
    # Ids are folded because some file systems ignore case and Unicode normalization.
    first: dict[str, AddedSkill] = {}
    for addition in additions:
        winner = first.setdefault(fold_name(addition.id), addition)
        if winner is not addition:
            first_path, path = _strip_common_parent(winner.bundle.folder, addition.bundle.folder)
            message = f"{first_path!r} of the same source uses the folder {winner.id!r}"
            finding = Finding(Code.SHADOWED, message, hint="add them into different folders")
            finding = finding.with_location(path, addition.name)
            report.findings += LENIENT.load_policy.judge([finding])
            report.skipped.append(SkippedSkill(addition.id, addition.name, "exists"))
    return list(first.values())


def _strip_common_parent(first: str, second: str) -> tuple[str, str]:
    # Messages must not contain absolute paths of the machine.
    parent = os.path.commonpath([first, second]) or "."
    return os.path.relpath(first, parent), os.path.relpath(second, parent)


def _write_skill(target: WritableFolder, addition: AddedSkill, *, overwrite: bool) -> bool:
    files = {
        path: (file.read(), _EXECUTABLE_MODE if file.executable else _FILE_MODE)
        for path, file in addition.bundle.files.items()
    }
    if target.entry_kind(addition.id) is None:
        target.create_folder(addition.id, files)
        return True
    if overwrite:
        check_replaceable(addition.id, read_installed_folder(addition.path, addition.id))
        target.replace_folder(addition.id, files)
    return overwrite


def report_addition(addition: AddedSkill, report: AddReport, *, is_added: bool) -> None:
    """Report a skill as added, or as skipped because it exists."""
    if is_added:
        report.added.append(addition)
    else:
        report.skipped.append(SkippedSkill(addition.id, addition.name, "exists"))


def choose_folder_name(bundle: Bundle) -> str:
    """Return the folder name of a skill: as in its source if safe, else from its name."""
    folder = bundle.folder.replace("\\", "/").rstrip("/").rpartition("/")[2]
    try:
        safe = RelativePath.parse(folder).text
    except UnsafePath:
        return suggest_name(_read_frontmatter(bundle).name or folder)
    return suggest_name(safe) if safe.startswith(".") else safe


def read_bundle_name(bundle: Bundle) -> str:
    """Return the name in the frontmatter, else the folder name."""
    return _read_frontmatter(bundle).name or choose_folder_name(bundle)


def read_bundle_description(bundle: Bundle) -> str:
    """Return the description in the frontmatter."""
    return _read_frontmatter(bundle).description


def build_bundle(folder: str, states: Mapping[str, FileState]) -> Bundle:
    """Build a bundle from files in memory."""
    files = {
        path: SkillFile(
            RelativePath.parse(path), len(state.data), state.executable, partial(_read_state, state)
        )
        for path, state in sorted(states.items())
    }
    return Bundle(folder, files)


def _read_state(state: FileState) -> bytes:
    return state.data


def _find_skill_md(bundle: Bundle) -> SkillFile | None:
    return next((file for path, file in bundle.files.items() if is_skill_md(path)), None)


def _read_frontmatter(bundle: Bundle) -> Frontmatter:
    file = _find_skill_md(bundle)
    return EMPTY_FRONTMATTER if file is None else parse_skill(file.read()).frontmatter


def compute_bundle_digest(bundle: Bundle) -> str:
    """Compute one digest over paths, sizes and digests of the files."""
    return compute_files_digest(to_locked_files(bundle))
