"""Checks skills from a source, and installs them in a project or a plain folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from skillhall._internal.catalog.duplicates.near_copies import (
    PresentSkill,
    find_near_copy,
    list_present_skills,
)
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.hints import find_close_names
from skillhall._internal.installer.agent_folders import InstallTargets
from skillhall._internal.installer.install_rules import (
    NO_RULES,
    InstallRules,
    load_install_rules,
)
from skillhall._internal.installer.lock import (
    LockEntry,
    LockTarget,
    to_locked_files,
)
from skillhall._internal.installer.project import (
    InstalledFiles,
    Project,
    check_replaceable,
    read_installed,
    read_installed_folder,
)
from skillhall._internal.installer.transaction import Files, open_transaction, to_written_files
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile, fold_name
from skillhall._internal.skill.checks import suggest_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import SKILL_MD, is_skill_md
from skillhall._internal.skill.merge import FileState
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, Frontmatter
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.sources.base import OpenedSource
from skillhall.errors import SkillNotInSource, UnsafePath


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedSkill:
    """A skill that passed the checks, before or after it is written.

    >>> (skill,) = Installer.project().add("./skills", skills=["pdf-tools"]).added
    >>> skill.name, skill.path.endswith("/.agents/skills/pdf-tools")
    ('pdf-tools', True)
    """

    id: str  # name of its folder
    name: str
    path: str
    digest: str
    bundle: Bundle
    signer: str = ""  # names of the known signers
    unsigned: bool = False  # its signature is broken, and counts as none


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedSkill:
    """A skill that was not added, with the reason.

    >>> installer = Installer.project()
    >>> report = installer.add("./skills", skills=["pdf-tools"])
    >>> [skill.name for skill in installer.add("./skills", skills=["pdf-tools"]).skipped]
    ['pdf-tools']
    """

    id: str
    name: str
    reason: str  # "exists" or "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddReport:
    """Added and skipped skills, with findings.

    >>> report = Installer.project().add("./skills", skills=["pdf-tools"])
    >>> len(report.added), len(report.skipped)
    (1, 0)
    """

    added: list[AddedSkill] = field(default_factory=list)
    skipped: list[SkippedSkill] = field(default_factory=list)
    findings: list[JudgedFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # further messages for the user


def select_bundles(bundles: Sequence[Bundle], names: Iterable[str]) -> list[Bundle]:
    """Return the bundles with these names or folder names; all if `names` is empty.

    Raises: SkillNotInSource.
    """
    names = list(names)
    if not names:
        return list(bundles)
    by_name: dict[str, Bundle] = {}
    for bundle in bundles:
        by_name |= dict.fromkeys((choose_folder_name(bundle), read_bundle_name(bundle)), bundle)
    for name in names:
        if name not in by_name:
            raise SkillNotInSource(name, find_close_names(name, by_name))
    return [by_name[name] for name in dict.fromkeys(names)]


def add_to_folder(
    bundles: Iterable[Bundle],
    folder: str,
    rules: InstallRules = NO_RULES,
    *,
    overwrite: bool = False,
    dry_run: bool = False,
) -> AddReport:
    """Write the bundles into `folder`, which is created if missing.

    Existing skills are skipped unless `overwrite`.
    Raises: UnsavedFilesError, NotASkill, OSError.
    """
    report = AddReport()
    ready = preflight_bundles(bundles, folder, report, rules)
    if dry_run:
        for addition in ready:
            is_added = overwrite or not os.path.lexists(addition.path)
            _record(report, addition, is_added=is_added)
        return report
    if ready:
        os.makedirs(folder, exist_ok=True)
        with WritableFolder(folder) as target, target.lock():
            target.recover()
            for addition in ready:
                is_added = _write_skill(target, addition, overwrite=overwrite)
                _record(report, addition, is_added=is_added)
    return report


def preflight_bundles(
    bundles: Iterable[Bundle], folder: str, report: AddReport, rules: InstallRules = NO_RULES
) -> list[AddedSkill]:
    """Return the skills that can be added to `folder`.

    Findings and skipped skills are added to `report`.
    """
    first: dict[str, AddedSkill] = {}
    bundles = list(bundles)
    present: list[PresentSkill] = []
    if os.path.isdir(folder):
        sizes = {file.size for bundle in bundles if (file := _find_skill_md(bundle)) and file.size}
        present += list_present_skills(folder, sizes)
    for bundle in bundles:
        skill = _check_bundle(bundle, folder, present, report, rules)
        if skill is None:
            continue
        # Ids are folded because some file systems ignore case and Unicode normalization.
        winner = first.setdefault(fold_name(skill.id), skill)
        if winner is not skill:
            # Messages must not contain absolute paths of the machine.
            parent = os.path.commonpath([winner.bundle.folder, bundle.folder]) or "."
            first_path, path = (os.path.relpath(b.folder, parent) for b in (winner.bundle, bundle))
            message = f"{first_path!r} from the same source already uses the folder {winner.id!r}"
            finding = Finding(Code.SHADOWED, message, hint="add them to different folders")
            report.findings.extend(
                LENIENT.load_policy.judge([finding.with_location(path, skill.name)])
            )
            report.skipped.append(SkippedSkill(id=skill.id, name=skill.name, reason="exists"))
    return list(first.values())


def _check_bundle(
    bundle: Bundle,
    folder: str,
    present: Sequence[PresentSkill],
    report: AddReport,
    rules: InstallRules,
) -> AddedSkill | None:
    """Return the skill if the lenient profile accepts it, else `None`.

    Findings are added to `report`.
    """
    file, skill_id = _find_skill_md(bundle), choose_folder_name(bundle)
    name, findings = skill_id, bundle.findings
    if file is not None:
        data = file.read()
        parsed = parse_skill(data, skill_id)
        name = parsed.frontmatter.name or skill_id
        findings = (*parsed.findings, *scan_bundle(bundle, parsed.frontmatter), *findings)
        if present and (near_copy := find_near_copy(data, skill_id, present)):
            findings = (*findings, near_copy)
        findings = (*findings, *rules.check(bundle))
    elif LENIENT.load_policy.accepts(findings):  # otherwise they explain the missing file
        findings = (Finding(Code.NO_SKILL_MD, f"No {SKILL_MD} found", 1), *findings)
    judged_findings = rules.load_policy.judge(
        finding.with_location(f"{skill_id}/{finding.path or SKILL_MD}", name)
        for finding in findings
    )
    report.findings.extend([j for j in judged_findings if j.effect is not Effect.ACCEPT])
    if any(judged.effect is Effect.REJECT for judged in judged_findings):
        report.skipped.append(SkippedSkill(id=skill_id, name=name, reason="rejected"))
        return None
    signature = rules.inspect_signature(bundle)
    if signature.note:
        report.notes.append(f"{skill_id}: {signature.note}")
    return AddedSkill(
        id=skill_id,
        name=name,
        path=os.path.join(folder, skill_id),
        digest=bundle.digest(),
        bundle=bundle,
        signer=signature.signer,
        unsigned=signature.is_ignored,
    )


def _record(report: AddReport, skill: AddedSkill, *, is_added: bool) -> None:
    """Report a skill as added, or as skipped because it exists."""
    if is_added:
        report.added.append(skill)
    else:
        report.skipped.append(SkippedSkill(id=skill.id, name=skill.name, reason="exists"))


def _write_skill(target: WritableFolder, addition: AddedSkill, *, overwrite: bool) -> bool:
    files = to_written_files(read_file_states(addition.bundle))
    if target.entry_kind(addition.id) is None:
        target.create_folder(addition.id, files)
        return True
    if overwrite:
        check_replaceable(addition.id, read_installed_folder(addition.path, addition.id))
        target.replace_folder(addition.id, files)
    return overwrite


def install(  # noqa: PLR0913 - what, from where, to where, and how
    project: Project,
    opened_source: OpenedSource,
    bundles: Iterable[Bundle],
    install_targets: InstallTargets,
    *,
    overwrite: bool = False,
    dry_run: bool = False,
    unsigned: bool = False,
) -> AddReport:
    """Install the bundles and record them in the lock file.

    Existing skills are skipped unless `overwrite`; overwritten ones can be rolled back. With
    `unsigned`, a broken signature counts as none.
    All targets are checked before the first one is written.
    Raises: LockInvalid, UnsafePath, UnsavedFilesError, NotASkill, OSError.
    """
    report = AddReport()
    loaded = [opened_source.load_bundle(bundle) for bundle in bundles]
    reference = opened_source.reference
    rules = load_install_rules(reference, project.settings, accepts_broken=unsigned)
    ready = preflight_bundles(loaded, project.path(install_targets.folder), report, rules)
    installation = _Installation(project, opened_source, install_targets, overwrite)
    if dry_run:
        entries = project.read_lock().entries
        for skill in ready:
            _record(report, skill, is_added=installation.plan(skill, entries).is_added)
    elif ready:
        with open_transaction(project, "add") as transaction:
            plans = [installation.plan(skill, transaction.entries) for skill in ready]
            for plan in plans:
                if plan.entry is not None:
                    transaction.check_targets(plan.key, plan.files_by_target, plan.entry)
            for skill, plan in zip(ready, plans, strict=True):
                if plan.entry is not None:
                    files = read_file_states(skill.bundle)
                    transaction.apply(plan.key, plan.files_by_target, plan.entry, files)
                _record(report, skill, is_added=plan.is_added)
        report.notes.extend(transaction.notes)
    return report


def read_file_states(bundle: Bundle) -> dict[str, FileState]:
    """Read the files of a bundle."""
    return {path: FileState(file.read(), file.executable) for path, file in bundle.files.items()}


class _InstallPlan(NamedTuple):
    """Planned change to a skill; without an entry, nothing is changed."""

    key: str
    is_added: bool
    entry: LockEntry | None = None
    files_by_target: Mapping[str, Files | None] = MappingProxyType({})


class _Installation(NamedTuple):
    """Project, source, targets and mode of an installation."""

    project: Project
    opened_source: OpenedSource
    install_targets: InstallTargets
    overwrite: bool

    def plan(self, skill: AddedSkill, entries: Mapping[str, LockEntry]) -> _InstallPlan:
        """Return the change that installing the skill would make."""
        project, targets = self.project, self.install_targets
        key = f"{targets.folder}/{skill.id}"
        files, before = read_file_states(skill.bundle), entries.get(key)
        known = before.targets if before else ()
        paths = [f"{folder}/{skill.id}" for folder in targets.other_folders]
        new = [
            LockTarget(path, targets.kind)
            for path in paths
            if path not in [target.path for target in known]
        ]
        reference, source_path = self.opened_source.reference.for_bundle(skill.bundle)
        entry = LockEntry(
            source=reference.to_portable_text(project.root, project.settings.working_directory),
            path=source_path,
            commit=self.opened_source.commit,
            digest=skill.digest,
            files=to_locked_files(skill.bundle),
            targets=(*known, *new),
            pinned=reference.is_pinned,
            name=skill.name,
            signer=skill.signer,
            unsigned=skill.unsigned,
            unknown_fields=before.unknown_fields if before else {},
        )
        copies = [key, *entry.get_target_paths("copy")]
        if self.overwrite:
            links = entry.get_target_paths("link")
            blocked = [path for path in links if _is_occupied(project, path, key)]
            written = {**dict.fromkeys(copies, files), **dict.fromkeys(blocked)}
            return _InstallPlan(key, is_added=True, entry=entry, files_by_target=written)
        installed = {path: read_installed(project, path) for path in copies}
        # A target with the same files counts as free: installing a skill twice is not a conflict.
        free = [path for path, found in installed.items() if found in (None, InstalledFiles(files))]
        is_blocked = any(
            _is_occupied(project, target.path, key)
            if target.kind == "link"
            else target.path not in free
            for target in new
        )
        if is_blocked or key not in free:
            return _InstallPlan(key, is_added=False)
        # An installed skill counts as added if it got a target for another agent. A skill that
        # exists but is not in the lock file is only recorded there.
        is_added = installed[key] is None or bool(new)
        is_recorded = is_added or before is None
        return _InstallPlan(
            key, is_added, entry if is_recorded else None, dict.fromkeys(free, files)
        )


def _is_occupied(project: Project, target_path: str, key: str) -> bool:
    """Whether something other than our link is at the target path."""
    return os.path.lexists(project.path(target_path)) and not project.is_link_to(target_path, key)


def choose_folder_name(bundle: Bundle) -> str:
    """Return a safe folder name for a skill: the one in its source, or from its name."""
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
        path: SkillFile(RelativePath.parse(path), len(data), executable, partial(bytes, data))
        for path, (data, executable) in sorted(states.items())
    }
    return Bundle(folder, files)


def _find_skill_md(bundle: Bundle) -> SkillFile | None:
    return next((file for path, file in bundle.files.items() if is_skill_md(path)), None)


def _read_frontmatter(bundle: Bundle) -> Frontmatter:
    file = _find_skill_md(bundle)
    return EMPTY_FRONTMATTER if file is None else parse_skill(file.read()).frontmatter
