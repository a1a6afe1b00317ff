"""Updating: what a source changed comes in, what a person changed stays."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.installer.install import read_file_states
from skillhall._internal.installer.lock import find_entry_keys, matches_entry, to_locked_files
from skillhall._internal.installer.preflight import (
    AddReport,
    build_bundle,
    compute_bundle_digest,
    preflight_bundles,
    read_bundle_name,
)
from skillhall._internal.installer.project import read_installed
from skillhall._internal.installer.transaction import open_transaction
from skillhall._internal.installer.upstream import Upstream
from skillhall._internal.skill.merge import (
    FileState,
    MergeBase,
    MergeKind,
    MergeResult,
    merge_files,
)
from skillhall.errors import SkillhallError, SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall._internal.installer.lock import LockEntry
    from skillhall._internal.installer.project import Project
    from skillhall._internal.installer.transaction import Files, Transaction
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.merge import MergeOutcome
    from skillhall._internal.sources.opener import OpenedSource, Progress

ConflictChoice: TypeAlias = Literal["mine", "theirs"]  # whose version a conflict ends with


class UpdateStatus(StrEnum):
    """How a skill stands to its source."""

    CURRENT = "current"
    OUTDATED = "outdated"  # there is news
    UPDATED = "updated"
    CONFLICT = "conflict"  # both sides changed the same; nothing was changed
    PINNED = "pinned"  # to a commit
    MISSING = "missing"  # in the lock, not in its folder
    REJECTED = "rejected"  # agents would not load what the source has now
    FAILED = "failed"  # the source cannot be read, or what is here must not be replaced


class UpdateResult(NamedTuple):
    """What became of one skill."""

    key: str
    status: UpdateStatus
    source: str
    before: str = ""  # commits, where the source has them
    after: str = ""
    outcomes: tuple[MergeOutcome, ...] = ()  # of the files that are not what they were
    findings: tuple[JudgedFinding, ...] = ()
    error: SkillhallError | None = None
    stale: str = ""


def find_outdated(
    project: Project, names: Iterable[str] = (), progress: Progress | None = None
) -> list[UpdateResult]:
    """Which skills have changed upstream; nothing is changed here.

    Raises: LockNotFound, LockInvalid, SkillNotFound, OSError.
    """
    entries = project.read_lock_entries()
    upstream = Upstream(project, progress)
    return [
        _compare_with_upstream(key, entries[key], upstream)[0]
        for key in find_entry_keys(entries, names)
    ]


def update(
    project: Project,
    names: Iterable[str] = (),
    *,
    conflicts: ConflictChoice | None = None,
    progress: Progress | None = None,
) -> list[UpdateResult]:
    """Bring skills up to date: files that were edited here are merged, and a conflict stops it.

    Raises: LockNotFound, LockInvalid, SkillNotFound, OSError.
    """
    entries = project.read_lock_entries()
    upstream = Upstream(project, progress)
    return [
        _update_entry(key, entries[key], upstream, conflicts)
        for key in find_entry_keys(entries, names)
    ]


def _update_entry(
    key: str, entry: LockEntry, upstream: Upstream, conflicts: ConflictChoice | None
) -> UpdateResult:
    seen, found = _compare_with_upstream(key, entry, upstream)
    if found is None:
        return seen
    try:
        base = _load_merge_base(upstream.project, key, entry, upstream)
        with open_transaction(upstream.project, "update") as work:
            now = work.entries.get(key)
            if now is None:  # somebody removed it while we fetched
                raise SkillNotFound(key)
            if now == entry:
                return _apply_update(work, seen, found, base, conflicts)
    except SkillhallError as error:
        return seen._replace(status=UpdateStatus.FAILED, error=error)
    # Somebody else changed it while we fetched: neither the base nor the news are right any more.
    return _update_entry(key, now, Upstream(upstream.project, upstream.progress), conflicts)


_UpstreamSkill: TypeAlias = "tuple[OpenedSource, Bundle]"


def _compare_with_upstream(
    key: str, entry: LockEntry, upstream: Upstream
) -> tuple[UpdateResult, _UpstreamSkill | None]:
    """How the skill stands to its source, and what the source has if that is news."""
    seen = UpdateResult(key, UpdateStatus.CURRENT, entry.source, entry.commit, entry.commit)
    if entry.pinned:
        return seen._replace(status=UpdateStatus.PINNED), None
    try:
        opened, bundle = upstream.find(entry)
        is_current = matches_entry(entry, bundle)
    except SkillhallError as error:
        return seen._replace(status=UpdateStatus.FAILED, error=error), None
    seen = seen._replace(after=opened.commit, stale=opened.stale)
    if is_current:
        return seen, None
    return seen._replace(status=UpdateStatus.OUTDATED), (opened, bundle)


def _load_merge_base(
    project: Project, key: str, entry: LockEntry, upstream: Upstream
) -> Mapping[str, MergeBase]:
    """The files as both sides began with them, as far as their bytes can still be found."""
    kept = {
        file.path: MergeBase(
            file.sha256, file.mode == "100755", project.content_store.find(file.sha256)
        )
        for file in entry.files
    }
    present = read_installed(project, key)
    mine = present.files if present is not None else {}
    edited = (path for path, base in kept.items() if path in mine and base.data is None)
    if entry.commit and any(
        MergeBase.from_file_state(mine[path]).sha256 != kept[path].sha256 for path in edited
    ):
        kept |= _load_base_from_commit(entry, upstream, kept)
    return kept


def _load_base_from_commit(
    entry: LockEntry, upstream: Upstream, known_base: Mapping[str, MergeBase]
) -> dict[str, MergeBase]:
    try:
        _, bundle = upstream.find(entry, entry.commit)
        found = {
            path: MergeBase.from_file_state(state)
            for path, state in read_file_states(bundle).items()
        }
    except SkillhallError:
        return {}  # without it, what both sides changed is a conflict
    return {
        path: one for path, one in found.items() if known_base.get(path, one).sha256 == one.sha256
    }


def _apply_update(
    transaction: Transaction,
    update_result: UpdateResult,
    upstream_skill: _UpstreamSkill,
    base: Mapping[str, MergeBase],
    conflicts: ConflictChoice | None,
) -> UpdateResult:
    entry = transaction.entries[update_result.key]
    if read_installed(transaction.project, update_result.key) is None:
        return update_result._replace(status=UpdateStatus.MISSING)
    opened, bundle = upstream_skill
    theirs = read_file_states(bundle)
    merged = {
        place: _merge_target(base, transaction.project, place, theirs)
        for place in (update_result.key, *entry.get_copy_paths())
    }
    outcomes = tuple(
        one
        for result in merged.values()
        for one in result.outcomes
        if one.kind is not MergeKind.UNCHANGED
    )
    update_result = update_result._replace(outcomes=outcomes)
    if conflicts is None and any(one.conflicts for one in merged.values()):
        return update_result._replace(status=UpdateStatus.CONFLICT)
    places = {
        place: _resolve_conflicts(result, theirs, conflicts) for place, result in merged.items()
    }
    report = AddReport()
    if not preflight_bundles(
        [build_bundle(update_result.key, places[update_result.key])],
        transaction.project.root,
        report,
    ):
        return update_result._replace(status=UpdateStatus.REJECTED, findings=tuple(report.findings))
    files = to_locked_files(bundle)
    name, digest = read_bundle_name(bundle), compute_bundle_digest(bundle)
    after = replace(entry, name=name, commit=opened.commit, digest=digest, files=files)
    transaction.apply(update_result.key, places, after, theirs)
    return update_result._replace(status=UpdateStatus.UPDATED, findings=tuple(report.findings))


def _merge_target(
    base: Mapping[str, MergeBase], project: Project, target_path: str, theirs: Files
) -> MergeResult:
    """What a place will hold; a copy that is gone comes back whole."""
    present = read_installed(project, target_path)
    return MergeResult(theirs, ()) if present is None else merge_files(base, present.files, theirs)


def _resolve_conflicts(
    merged: MergeResult, theirs: Files, conflicts: ConflictChoice | None
) -> dict[str, FileState]:
    """The files after all; a conflict has left them as they were here."""
    files = dict(merged.files)
    for one in merged.conflicts if conflicts == "theirs" else ():
        if one.clashing_path and one.clashing_path not in theirs:
            files.pop(one.clashing_path, None)
        if one.path in theirs:
            files[one.path] = theirs[one.path]
        else:
            files.pop(one.path, None)
    return files
