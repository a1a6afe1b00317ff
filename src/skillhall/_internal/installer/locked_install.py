"""Installation of missing skills exactly as recorded in the lock file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.agent_folders import UNIVERSAL_FOLDER, InstallTargets
from skillhall._internal.installer.approvals import approve_skills, get_locked_files
from skillhall._internal.installer.install import (
    install,
    read_bundle_name,
    read_file_states,
    select_bundles,
)
from skillhall._internal.installer.install_rules import load_install_rules
from skillhall._internal.installer.lock import LockEntry, matches_entry, update_entry
from skillhall._internal.installer.npx_lock import (
    NpxEntry,
    compute_git_tree_id,
    compute_npx_hash,
    has_portable_order,
    read_npx_lock,
)
from skillhall._internal.installer.project import Project, read_installed
from skillhall._internal.installer.transaction import open_transaction
from skillhall._internal.installer.update import Upstream
from skillhall._internal.installer.verify import verify_entry
from skillhall._internal.sources.opener import open_source
from skillhall.errors import LockMismatch, SkillhallError, SkillRejected, SourceRejected

if TYPE_CHECKING:
    from skillhall._internal.sources.base import Progress


class LockedInstallStatus(StrEnum):
    """Outcome for a skill in the lock file."""

    PRESENT = "there"
    INSTALLED = "installed"
    EDITED = "edited"  # differs from the lock file; left unchanged
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedInstallResult:
    """Result for one skill in the lock file.

    >>> installer = Installer.project()
    >>> report = installer.add("./skills", skills=["pdf-tools"])
    >>> [(result.key, result.status.value) for result in installer.install()]
    [('.agents/skills/pdf-tools', 'there')]
    """

    key: str
    status: LockedInstallStatus
    error: SkillhallError | None = None


class _Options(NamedTuple):
    """Options of an installation from the lock file."""

    frozen: bool
    unsigned: bool


def install_locked(
    project: Project,
    *,
    frozen: bool = False,
    unsigned: bool = False,
    progress: Progress | None = None,
) -> list[LockedInstallResult]:
    """Install missing skills from the lock file; others are left unchanged.

    With `frozen`, the lock file never changes: a source with different files is a failure. Skills
    that are only in the npx lock are installed too. With `unsigned`, broken signatures count as
    none. Raises: LockInvalid, OSError.
    """
    options = _Options(frozen, unsigned)
    upstream = Upstream(project, progress)
    entries = project.read_lock().entries
    results = [
        _install_entry(project, key, entry, upstream, options)
        for key, entry in sorted(entries.items())
    ]
    known = {name for key, e in entries.items() for name in (key.rpartition("/")[2], e.name)}
    npx_entries = read_npx_lock(project.npx_lock_path)
    return results + [
        _install_npx_entry(project, npx_entry, progress, options)
        for name, npx_entry in sorted(npx_entries.items())
        if name not in known
    ]


def _install_entry(
    project: Project, key: str, entry: LockEntry, upstream: Upstream, options: _Options
) -> LockedInstallResult:
    frozen = options.frozen
    try:
        if (result := _find_existing(project, key, entry, frozen=frozen)) is not None:
            if result.status is LockedInstallStatus.PRESENT:
                approve_skills(project, "install", [(key, entry, get_locked_files(entry))])
            return result
        opened, bundle = upstream.find(entry, entry.commit)
        new_entry = entry
        if not matches_entry(entry, bundle):
            # Skills of MCP servers need a review, so changed ones are never installed unattended.
            if frozen or entry.commit or opened.reference.needs_approval:
                raise LockMismatch(key, "the files in the source differ from the locked ones")
            new_entry = update_entry(entry, bundle, read_bundle_name(bundle), opened.commit)
        # The lock file is the decision of the project: it could as well name unsigned files.
        is_unsigned = options.unsigned or new_entry.unsigned
        rules = load_install_rules(opened.reference, project.settings, accepts_broken=is_unsigned)
        signature = rules.require_accepted(key, bundle)
        if new_entry is not entry:
            new_entry = replace(new_entry, signer=signature.signer)
        if signature.is_ignored and not frozen:
            new_entry = replace(new_entry, unsigned=True)
        with open_transaction(project, "add") as transaction:
            # Another process may have changed the project while we were fetching.
            if transaction.entries.get(key) != entry:
                raise LockMismatch(key, "its entry was changed by another process")
            if (result := _find_existing(project, key, entry, frozen=frozen)) is not None:
                return result
            files = read_file_states(bundle)
            targets = dict.fromkeys([key, *new_entry.get_target_paths("copy")], files)
            transaction.apply(key, targets, new_entry, files)
    except SkillhallError as error:
        return LockedInstallResult(key=key, status=LockedInstallStatus.FAILED, error=error)
    return LockedInstallResult(key=key, status=LockedInstallStatus.INSTALLED)


def _find_existing(
    project: Project, key: str, entry: LockEntry, *, frozen: bool
) -> LockedInstallResult | None:
    """Return the result for an intact or edited skill; `None` if it must be installed."""
    targets = verify_entry(project, key, entry)
    if all(target.is_intact for target in targets):
        return LockedInstallResult(key=key, status=LockedInstallStatus.PRESENT)
    if any(target.is_there and not target.is_intact for target in targets):
        error = LockMismatch(key, "its files were edited") if frozen else None
        return LockedInstallResult(key=key, status=LockedInstallStatus.EDITED, error=error)
    return None


def _install_npx_entry(
    project: Project, npx_entry: NpxEntry, progress: Progress | None, options: _Options
) -> LockedInstallResult:
    """Install a skill from the npx lock; with `frozen`, its hash must match."""
    key = f"{UNIVERSAL_FOLDER}/{npx_entry.name}"
    text = npx_entry.to_reference()
    if read_installed(project, key) is not None:
        return LockedInstallResult(key=key, status=LockedInstallStatus.PRESENT)
    try:
        if text is None:
            raise SourceRejected("url", npx_entry.source, "this kind of source is not supported")
        # Paths in a lock file are relative to the project, not to the working directory.
        settings = project.settings._replace(working_directory=project.root)
        opened = open_source(text, settings, progress)
        names = [] if len(opened.bundles) == 1 else [npx_entry.name]
        bundle = select_bundles(opened.bundles, names)[0]
        if options.frozen:
            files = read_file_states(bundle)
            contents = {path: file.data for path, file in files.items()}
            hashes = {compute_npx_hash(contents), compute_git_tree_id(files)}
            if has_portable_order(contents) and npx_entry.hash not in hashes:
                raise LockMismatch(key, "the files in the source differ from the locked ones")
        report = install(project, opened, [bundle], InstallTargets(), unsigned=options.unsigned)
        if any(skill.reason == "rejected" for skill in report.skipped):
            raise SkillRejected(key, [judged.finding.message for judged in report.findings])
    except SkillhallError as error:
        return LockedInstallResult(key=key, status=LockedInstallStatus.FAILED, error=error)
    status = LockedInstallStatus.INSTALLED if report.added else LockedInstallStatus.PRESENT
    return LockedInstallResult(key=key, status=status)
