"""Restoring: what a lock names and what is missing here, exactly as it was locked."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.agent_folders import UNIVERSAL_FOLDER
from skillhall._internal.installer.install import install, read_file_states
from skillhall._internal.installer.lock import matches_entry, to_locked_files
from skillhall._internal.installer.npx_hashes import (
    HashedFile,
    compute_git_tree_id,
    compute_npx_hash,
    has_portable_order,
)
from skillhall._internal.installer.npx_lock import read_npx_lock
from skillhall._internal.installer.preflight import (
    compute_bundle_digest,
    read_bundle_name,
    select_bundles,
)
from skillhall._internal.installer.project import read_installed
from skillhall._internal.installer.targets import InstallTargets
from skillhall._internal.installer.transaction import open_transaction
from skillhall._internal.installer.upstream import Upstream
from skillhall._internal.installer.verify import verify_entry
from skillhall._internal.sources.opener import open_source
from skillhall._internal.sources.ref import McpRef
from skillhall.errors import LockMismatch, SkillhallError, SkillRejected, SourceRejected

if TYPE_CHECKING:
    from skillhall._internal.installer.lock import LockEntry
    from skillhall._internal.installer.npx_lock import NpxEntry
    from skillhall._internal.installer.project import Project
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.opener import Progress


class LockedInstallStatus(StrEnum):
    """What became of a skill in a lock."""

    PRESENT = "there"
    INSTALLED = "installed"
    EDITED = "edited"  # there, not as it was locked; left as it is
    FAILED = "failed"


class LockedInstallResult(NamedTuple):
    """One skill of a lock."""

    key: str
    status: LockedInstallStatus
    error: SkillhallError | None = None


def install_locked(
    project: Project, *, frozen: bool = False, progress: Progress | None = None
) -> list[LockedInstallResult]:
    """Install what the lock names and is not here; what is here stays as it is.

    A frozen lock is never changed: a source that has something else now is a failure. Skills that
    only `npx skills` has noted are installed, too. Raises: LockInvalid, OSError.
    """
    upstream = Upstream(project, progress)
    entries = project.read_lock().entries
    results = [
        _install_entry(project, key, entry, upstream, frozen=frozen)
        for key, entry in sorted(entries.items())
    ]
    known = {name for key, one in entries.items() for name in (key.rpartition("/")[2], one.name)}
    others = read_npx_lock(project.npx_lock_path).entries
    return results + [
        _install_npx_entry(project, other, progress, frozen=frozen)
        for name, other in sorted(others.items())
        if name not in known
    ]


def _install_entry(
    project: Project, key: str, entry: LockEntry, upstream: Upstream, *, frozen: bool
) -> LockedInstallResult:
    try:
        if (found := _find_existing(project, key, entry, frozen=frozen)) is not None:
            return found
        opened, bundle = upstream.find(entry, entry.commit)
        if not matches_entry(entry, bundle):
            if frozen or entry.commit or isinstance(opened.reference, McpRef):
                # Of a server, only what a person approved is taken without being asked for.
                raise LockMismatch(key, "its source has other files")
            name, digest, files = (
                read_bundle_name(bundle),
                compute_bundle_digest(bundle),
                to_locked_files(bundle),
            )
            now = replace(entry, name=name, commit=opened.commit, digest=digest, files=files)
        else:
            now = entry
        with open_transaction(project, "add") as work:
            if work.entries.get(key) != entry:
                raise LockMismatch(key, "somebody changed it meanwhile")
            if (found := _find_existing(project, key, entry, frozen=frozen)) is not None:
                return found
            work.install(key, now, read_file_states(bundle))
    except SkillhallError as error:
        return LockedInstallResult(key, LockedInstallStatus.FAILED, error)
    return LockedInstallResult(key, LockedInstallStatus.INSTALLED)


def _find_existing(
    project: Project, key: str, entry: LockEntry, *, frozen: bool
) -> LockedInstallResult | None:
    """What is said of a skill that stays as it is; `None` if it is missing somewhere."""
    places = verify_entry(project, key, entry)
    if all(place.is_intact for place in places):
        return LockedInstallResult(key, LockedInstallStatus.PRESENT)
    if any(place.is_there and not place.is_intact for place in places):
        error = LockMismatch(key, "its files were edited") if frozen else None
        return LockedInstallResult(key, LockedInstallStatus.EDITED, error)
    return None


def _install_npx_entry(
    project: Project, npx_entry: NpxEntry, progress: Progress | None, *, frozen: bool
) -> LockedInstallResult:
    """Install a skill that another tool has noted; if frozen, only what it has noted."""
    key = f"{UNIVERSAL_FOLDER}/{npx_entry.name}"
    text = npx_entry.to_reference()
    if read_installed(project, key) is not None:
        return LockedInstallResult(key, LockedInstallStatus.PRESENT)
    try:
        if text is None:
            raise SourceRejected("url", npx_entry.source, "its kind of source is not one we know")
        settings = project.settings._replace(working_directory=project.root)
        opened = open_source(text, settings, progress)
        bundle = select_bundles(
            opened.bundles, [] if len(opened.bundles) == 1 else [npx_entry.name]
        )[0]
        if frozen and not _matches_npx_entry(npx_entry, bundle):
            raise LockMismatch(key, "its source has other files")
        report = install(project, opened, [bundle], InstallTargets())
        if any(one.reason == "rejected" for one in report.skipped):
            raise SkillRejected(key, [one.finding.message for one in report.findings])
    except SkillhallError as error:
        return LockedInstallResult(key, LockedInstallStatus.FAILED, error)
    return LockedInstallResult(
        key, LockedInstallStatus.INSTALLED if report.added else LockedInstallStatus.PRESENT
    )


def _matches_npx_entry(npx_entry: NpxEntry, bundle: Bundle) -> bool:
    files = {path: HashedFile(file.read(), file.executable) for path, file in bundle.files.items()}
    plain = {path: content.data for path, content in files.items()}
    return not has_portable_order(plain) or npx_entry.hash in {
        compute_npx_hash(plain),
        compute_git_tree_id(files),
    }
