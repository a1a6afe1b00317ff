"""Installing: skills from a source onto a shelf, noted in its lock."""

from __future__ import annotations

import os
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.lock import (
    LockEntry,
    LockTarget,
    to_locked_files,
    to_portable_source,
)
from skillhall._internal.installer.preflight import AddReport, preflight_bundles, report_addition
from skillhall._internal.installer.project import InstalledFiles, read_installed
from skillhall._internal.installer.transaction import open_transaction
from skillhall._internal.skill.merge import FileState
from skillhall._internal.sources.ref import GitHubRef, GitRef, is_commit_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall._internal.installer.preflight import AddedSkill
    from skillhall._internal.installer.project import Project
    from skillhall._internal.installer.targets import InstallTargets
    from skillhall._internal.installer.transaction import Files
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.opener import OpenedSource


def install(  # noqa: PLR0913 - what, from where, to where, and how
    project: Project,
    opened_source: OpenedSource,
    bundles: Iterable[Bundle],
    install_targets: InstallTargets,
    *,
    overwrite: bool = False,
    dry_run: bool = False,
) -> AddReport:
    """Put the bundles on the shelf, and what they are and where they came from into its lock.

    A skill that is there already stays, unless it may be overwritten: then it can be brought back.
    All are checked before the first is written.
    Raises: LockInvalid, UnsafePath, UnsavedFilesError, NotASkill, OSError.
    """
    report = AddReport()
    whole = [opened_source.load_bundle(bundle) for bundle in bundles]
    ready = preflight_bundles(whole, project.path(install_targets.folder), report)
    wanted = {
        f"{install_targets.folder}/{one.id}": (
            one,
            build_lock_entry(project, opened_source, one, install_targets),
        )
        for one in ready
    }
    if dry_run:
        known = project.read_lock().entries
        for key, (addition, entry) in wanted.items():
            plan = _plan_install(
                project, known.get(key), _InstallRequest(key, addition, entry, overwrite)
            )
            report_addition(addition, report, is_added=plan.is_added)
    elif ready:
        with open_transaction(project, "add") as work:
            plans = {
                key: _plan_install(
                    project, work.entries.get(key), _InstallRequest(key, one, entry, overwrite)
                )
                for key, (one, entry) in wanted.items()
            }
            for key, plan in plans.items():
                if plan.entry is not None:
                    work.check_targets(key, plan.files_by_target, plan.entry)
            for key, plan in plans.items():
                addition = wanted[key][0]
                if plan.entry is not None:
                    work.apply(
                        key, plan.files_by_target, plan.entry, read_file_states(addition.bundle)
                    )
                report_addition(addition, report, is_added=plan.is_added)
        report.notes += work.notes
    return report


def build_lock_entry(
    project: Project,
    opened_source: OpenedSource,
    addition: AddedSkill,
    install_targets: InstallTargets,
) -> LockEntry:
    """What the lock says about a skill that goes where `placement` says."""
    reference, base = opened_source.reference, project.settings.working_directory
    whole = opened_source.get_bundle_reference(addition.bundle)
    targets = (
        LockTarget(f"{folder}/{addition.id}", install_targets.kind)
        for folder in install_targets.other_folders
    )
    return LockEntry(
        source=to_portable_source(whole, project.root, base),
        path=opened_source.get_bundle_path(addition.bundle),
        commit=opened_source.commit,
        digest=addition.digest,
        files=to_locked_files(addition.bundle),
        targets=tuple(targets),
        pinned=isinstance(reference, GitHubRef | GitRef) and is_commit_id(reference.ref),
        name=addition.name,
    )


def read_file_states(bundle: Bundle) -> dict[str, FileState]:
    """The files of a bundle, read."""
    return {path: FileState(file.read(), file.executable) for path, file in bundle.files.items()}


class _InstallRequest(NamedTuple):
    """One skill, where it should go, and what the lock should say."""

    key: str
    addition: AddedSkill
    entry: LockEntry
    overwrite: bool


class _InstallPlan(NamedTuple):
    """What will be done for a wish; without an entry, nothing."""

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
        in_the_way = [one for one in entry.get_link_paths() if _is_taken(project, one, request.key)]
        places = {**dict.fromkeys(copies, files), **dict.fromkeys(in_the_way)}
        return _InstallPlan(is_added=True, entry=entry, files_by_target=places)
    present = {place: read_installed(project, place) for place in copies}
    free = [place for place, found in present.items() if found in (None, InstalledFiles(files))]
    taken = [
        one.path
        for one in new
        if (
            _is_taken(project, one.path, request.key)
            if one.kind == "link"
            else one.path not in free
        )
    ]
    if taken or request.key not in free:
        return _InstallPlan(is_added=False)
    # The same skill may be wanted for one more agent; else it is just noted where it was not yet.
    is_added = present[request.key] is None or bool(new)
    is_wanted = is_added or before is None
    return _InstallPlan(is_added, entry if is_wanted else None, dict.fromkeys(free, files))


def _is_taken(project: Project, target_path: str, key: str) -> bool:
    """Whether something else than our link stands there."""
    return os.path.lexists(project.path(target_path)) and not project.is_link_to(target_path, key)
