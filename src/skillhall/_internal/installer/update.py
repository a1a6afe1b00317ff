"""Updating: what a source changed comes in, what a person changed stays."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.installer.install import states_of
from skillhall._internal.installer.lock import holds, keys_called, locked_files
from skillhall._internal.installer.preflight import (
    AddReport,
    bundle_of,
    digest_of,
    name_of,
    prepare,
)
from skillhall._internal.installer.project import read_installed
from skillhall._internal.installer.transaction import changing
from skillhall._internal.installer.upstream import Upstream
from skillhall._internal.skill.merge import Base, FileState, Kind, Merged, merge_files
from skillhall.errors import SkillhallError, SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall._internal.installer.lock import LockEntry
    from skillhall._internal.installer.project import Shelf
    from skillhall._internal.installer.transaction import Files, Work
    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.merge import Outcome
    from skillhall._internal.sources.opener import Opened, Progress

Take: TypeAlias = Literal["mine", "theirs"]  # whose version a conflict ends with


class Status(StrEnum):
    """How a skill stands to its source."""

    CURRENT = "current"
    OUTDATED = "outdated"  # there is news
    UPDATED = "updated"
    CONFLICT = "conflict"  # both sides changed the same; nothing was changed
    PINNED = "pinned"  # to a commit
    MISSING = "missing"  # in the lock, not in its folder
    REJECTED = "rejected"  # agents would not load what the source has now
    FAILED = "failed"  # the source cannot be read, or what is here must not be replaced


class Updated(NamedTuple):
    """What became of one skill."""

    key: str
    status: Status
    source: str
    before: str = ""  # commits, where the source has them
    after: str = ""
    outcomes: tuple[Outcome, ...] = ()  # of the files that are not what they were
    findings: tuple[Judged, ...] = ()
    error: SkillhallError | None = None
    stale: str = ""


def outdated(
    shelf: Shelf, names: Iterable[str] = (), progress: Progress | None = None
) -> list[Updated]:
    """Which skills have changed upstream; nothing is changed here.

    Raises: LockNotFound, LockInvalid, SkillNotFound, OSError.
    """
    entries = shelf.locked()
    upstream = Upstream(shelf, progress)
    return [_compared(key, entries[key], upstream)[0] for key in keys_called(entries, names)]


def update(
    shelf: Shelf,
    names: Iterable[str] = (),
    *,
    take: Take | None = None,
    progress: Progress | None = None,
) -> list[Updated]:
    """Bring skills up to date: files that were edited here are merged, and a conflict stops it.

    Raises: LockNotFound, LockInvalid, SkillNotFound, OSError.
    """
    entries = shelf.locked()
    upstream = Upstream(shelf, progress)
    return [_bring_up(key, entries[key], upstream, take) for key in keys_called(entries, names)]


def _bring_up(key: str, entry: LockEntry, upstream: Upstream, take: Take | None) -> Updated:
    seen, found = _compared(key, entry, upstream)
    if found is None:
        return seen
    try:
        base = _base(upstream.shelf, key, entry, upstream)
        with changing(upstream.shelf, "update") as work:
            now = work.entries.get(key)
            if now is None:  # somebody removed it while we fetched
                raise SkillNotFound(key)
            if now == entry:
                return _update(work, seen, found, base, take)
    except SkillhallError as error:
        return seen._replace(status=Status.FAILED, error=error)
    # Somebody else changed it while we fetched: neither the base nor the news are right any more.
    return _bring_up(key, now, Upstream(upstream.shelf, upstream.progress), take)


_Found: TypeAlias = "tuple[Opened, Bundle]"


def _compared(key: str, entry: LockEntry, upstream: Upstream) -> tuple[Updated, _Found | None]:
    """How the skill stands to its source, and what the source has if that is news."""
    seen = Updated(key, Status.CURRENT, entry.source, entry.commit, entry.commit)
    if entry.pinned:
        return seen._replace(status=Status.PINNED), None
    try:
        opened, bundle = upstream.find(entry)
        is_current = holds(entry, bundle)
    except SkillhallError as error:
        return seen._replace(status=Status.FAILED, error=error), None
    seen = seen._replace(after=opened.commit, stale=opened.stale)
    if is_current:
        return seen, None
    return seen._replace(status=Status.OUTDATED), (opened, bundle)


def _base(shelf: Shelf, key: str, entry: LockEntry, upstream: Upstream) -> Mapping[str, Base]:
    """The files as both sides began with them, as far as their bytes can still be found."""
    kept = {
        file.path: Base(file.sha256, file.mode == "100755", shelf.contents.find(file.sha256))
        for file in entry.files
    }
    present = read_installed(shelf, key)
    mine = present.files if present is not None else {}
    edited = (path for path, base in kept.items() if path in mine and base.data is None)
    if entry.commit and any(Base.of(mine[path]).sha256 != kept[path].sha256 for path in edited):
        kept |= _base_of_commit(entry, upstream, kept)
    return kept


def _base_of_commit(
    entry: LockEntry, upstream: Upstream, kept: Mapping[str, Base]
) -> dict[str, Base]:
    try:
        _, bundle = upstream.find(entry, entry.commit)
        found = {path: Base.of(state) for path, state in states_of(bundle).items()}
    except SkillhallError:
        return {}  # without it, what both sides changed is a conflict
    return {path: one for path, one in found.items() if kept.get(path, one).sha256 == one.sha256}


def _update(
    work: Work, seen: Updated, found: _Found, base: Mapping[str, Base], take: Take | None
) -> Updated:
    entry = work.entries[seen.key]
    if read_installed(work.shelf, seen.key) is None:
        return seen._replace(status=Status.MISSING)
    opened, bundle = found
    theirs = states_of(bundle)
    merged = {
        place: _merged(base, work.shelf, place, theirs) for place in (seen.key, *entry.copies())
    }
    outcomes = tuple(
        one
        for result in merged.values()
        for one in result.outcomes
        if one.kind is not Kind.UNCHANGED
    )
    seen = seen._replace(outcomes=outcomes)
    if take is None and any(one.conflicts for one in merged.values()):
        return seen._replace(status=Status.CONFLICT)
    places = {place: _settled(result, theirs, take) for place, result in merged.items()}
    report = AddReport()
    if not prepare([bundle_of(seen.key, places[seen.key])], work.shelf.root, report):
        return seen._replace(status=Status.REJECTED, findings=tuple(report.findings))
    files = locked_files(bundle)
    name, digest = name_of(bundle), digest_of(bundle)
    after = replace(entry, name=name, commit=opened.commit, digest=digest, files=files)
    work.apply(seen.key, places, after, theirs)
    return seen._replace(status=Status.UPDATED, findings=tuple(report.findings))


def _merged(base: Mapping[str, Base], shelf: Shelf, place: str, theirs: Files) -> Merged:
    """What a place will hold; a copy that is gone comes back whole."""
    present = read_installed(shelf, place)
    return Merged(theirs, ()) if present is None else merge_files(base, present.files, theirs)


def _settled(merged: Merged, theirs: Files, take: Take | None) -> dict[str, FileState]:
    """The files after all; a conflict has left them as they were here."""
    files = dict(merged.files)
    for one in merged.conflicts if take == "theirs" else ():
        if one.other and one.other not in theirs:
            files.pop(one.other, None)
        if one.path in theirs:
            files[one.path] = theirs[one.path]
        else:
            files.pop(one.path, None)
    return files
