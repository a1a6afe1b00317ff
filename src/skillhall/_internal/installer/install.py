"""Installation of skills from a source into a project."""

from __future__ import annotations

import os
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.lock import (
    LockEntry,
    LockTarget,
    to_locked_files,
)
from skillhall._internal.installer.preflight import AddReport, preflight_bundles, report_addition
from skillhall._internal.installer.project import InstalledFiles, read_installed
from skillhall._internal.installer.transaction import open_transaction
from skillhall._internal.skill.merge import FileState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall._internal.installer.preflight import AddedSkill
    from skillhall._internal.installer.project import Project
    from skillhall._internal.installer.targets import InstallTargets
    from skillhall._internal.installer.transaction import Files
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.base import OpenedSource


def install(  # noqa: PLR0913 - what, from where, to where, and how
    project: Project,
    opened_source: OpenedSource,
    bundles: Iterable[Bundle],
    install_targets: InstallTargets,
    *,
    overwrite: bool = False,
    dry_run: bool = False,
) -> AddReport:
    """Install the bundles and record them in the lock file.

    Existing skills are skipped unless `overwrite`; overwritten ones can be rolled back.
    All targets are checked before the first one is written.
    Raises: LockInvalid, UnsafePath, UnsavedFilesError, NotASkill, OSError.
    """
    report = AddReport()
    loaded = [opened_source.load_bundle(bundle) for bundle in bundles]
    ready = preflight_bundles(loaded, project.path(install_targets.folder), report)
    requests = [
        _InstallRequest(
            f"{install_targets.folder}/{addition.id}",
            addition,
            build_lock_entry(project, opened_source, addition, install_targets),
            overwrite,
        )
        for addition in ready
    ]
    if dry_run:
        entries = project.read_lock().entries
        for request in requests:
            plan = _plan_install(project, entries.get(request.key), request)
            report_addition(request.addition, report, is_added=plan.is_added)
    elif ready:
        with open_transaction(project, "add") as transaction:
            plans = [
                (request, _plan_install(project, transaction.entries.get(request.key), request))
                for request in requests
            ]
            for request, plan in plans:
                if plan.entry is not None:
                    transaction.check_targets(request.key, plan.files_by_target, plan.entry)
            for request, plan in plans:
                if plan.entry is not None:
                    files = read_file_states(request.addition.bundle)
                    transaction.apply(request.key, plan.files_by_target, plan.entry, files)
                report_addition(request.addition, report, is_added=plan.is_added)
        report.notes += transaction.notes
    return report


def build_lock_entry(
    project: Project,
    opened_source: OpenedSource,
    addition: AddedSkill,
    install_targets: InstallTargets,
) -> LockEntry:
    """Build the lock file entry of a skill for these targets."""
    reference, path = opened_source.reference.for_bundle(addition.bundle)
    targets = (
        LockTarget(f"{folder}/{addition.id}", install_targets.kind)
        for folder in install_targets.other_folders
    )
    return LockEntry(
        source=reference.to_portable_text(project.root, project.settings.working_directory),
        path=path,
        commit=opened_source.commit,
        digest=addition.digest,
        files=to_locked_files(addition.bundle),
        targets=tuple(targets),
        pinned=reference.is_pinned,
        name=addition.name,
    )


def read_file_states(bundle: Bundle) -> dict[str, FileState]:
    """Read the files of a bundle."""
    return {path: FileState(file.read(), file.executable) for path, file in bundle.files.items()}


class _InstallRequest(NamedTuple):
    """One skill to install, with its key and new lock file entry."""

    key: str
    addition: AddedSkill
    entry: LockEntry
    overwrite: bool


class _InstallPlan(NamedTuple):
    """Planned change for a request; without an entry, nothing is changed."""

    is_added: bool
    entry: LockEntry | None = None
    files_by_target: Mapping[str, Files | None] = MappingProxyType({})


def _plan_install(
    project: Project, before: LockEntry | None, request: _InstallRequest
) -> _InstallPlan:
    files = read_file_states(request.addition.bundle)
    known = {target.path: target for target in before.targets} if before else {}
    new = [target for target in request.entry.targets if target.path not in known]
    entry = replace(
        request.entry,
        targets=(*known.values(), *new),
        unknown_fields=before.unknown_fields if before else {},
    )
    copies = [request.key, *entry.get_copy_paths()]
    if request.overwrite:
        links = entry.get_link_paths()
        blocked = [path for path in links if _is_occupied(project, path, request.key)]
        targets = {**dict.fromkeys(copies, files), **dict.fromkeys(blocked)}
        return _InstallPlan(is_added=True, entry=entry, files_by_target=targets)
    installed = {path: read_installed(project, path) for path in copies}
    # A target with the same files counts as free: installing a skill twice is not a conflict.
    free = [path for path, found in installed.items() if found in (None, InstalledFiles(files))]
    is_blocked = any(
        _is_occupied(project, target.path, request.key)
        if target.kind == "link"
        else target.path not in free
        for target in new
    )
    if is_blocked or request.key not in free:
        return _InstallPlan(is_added=False)
    # An installed skill counts as added if it got a target for another agent. A skill that exists
    # but is not in the lock file is only recorded there.
    is_added = installed[request.key] is None or bool(new)
    is_recorded = is_added or before is None
    return _InstallPlan(is_added, entry if is_recorded else None, dict.fromkeys(free, files))


def _is_occupied(project: Project, target_path: str, key: str) -> bool:
    """Whether something other than our link exists there."""
    return os.path.lexists(project.path(target_path)) and not project.is_link_to(target_path, key)
