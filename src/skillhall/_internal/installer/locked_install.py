"""Restoring: what a lock names and what is missing here, exactly as it was locked."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.agent_folders import UNIVERSAL
from skillhall._internal.installer.install import install, states_of
from skillhall._internal.installer.lock import holds, locked_files
from skillhall._internal.installer.npx_hashes import (
    Content,
    computed_hash,
    git_tree_id,
    is_comparable,
)
from skillhall._internal.installer.npx_lock import read_foreign
from skillhall._internal.installer.preflight import choose, digest_of, name_of
from skillhall._internal.installer.project import read_installed
from skillhall._internal.installer.targets import Placement
from skillhall._internal.installer.transaction import changing
from skillhall._internal.installer.upstream import Upstream
from skillhall._internal.installer.verify import verify_entry
from skillhall._internal.sources.opener import open_source
from skillhall._internal.sources.ref import McpRef
from skillhall.errors import LockMismatch, SkillhallError, SkillRejected, SourceRejected

if TYPE_CHECKING:
    from skillhall._internal.installer.lock import LockEntry
    from skillhall._internal.installer.npx_lock import ForeignEntry
    from skillhall._internal.installer.project import Shelf
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.opener import Progress


class Status(StrEnum):
    """What became of a skill in a lock."""

    THERE = "there"
    INSTALLED = "installed"
    EDITED = "edited"  # there, not as it was locked; left as it is
    FAILED = "failed"


class Restored(NamedTuple):
    """One skill of a lock."""

    key: str
    status: Status
    error: SkillhallError | None = None


def restore(
    shelf: Shelf, *, frozen: bool = False, progress: Progress | None = None
) -> list[Restored]:
    """Install what the lock names and is not here; what is here stays as it is.

    A frozen lock is never changed: a source that has something else now is a failure. Skills that
    only `npx skills` has noted are installed, too. Raises: LockInvalid, OSError.
    """
    upstream = Upstream(shelf, progress)
    entries = shelf.lock().entries
    results = [
        _restore(shelf, key, entry, upstream, frozen=frozen)
        for key, entry in sorted(entries.items())
    ]
    known = {name for key, one in entries.items() for name in (key.rpartition("/")[2], one.name)}
    others = read_foreign(shelf.foreign).entries
    return results + [
        _adopt(shelf, other, progress, frozen=frozen)
        for name, other in sorted(others.items())
        if name not in known
    ]


def _restore(
    shelf: Shelf, key: str, entry: LockEntry, upstream: Upstream, *, frozen: bool
) -> Restored:
    try:
        if (found := _as_it_is(shelf, key, entry, frozen=frozen)) is not None:
            return found
        opened, bundle = upstream.find(entry, entry.commit)
        if not holds(entry, bundle):
            if frozen or entry.commit or isinstance(opened.reference, McpRef):
                # Of a server, only what a person approved is taken without being asked for.
                raise LockMismatch(key, "its source has other files")
            name, digest, files = name_of(bundle), digest_of(bundle), locked_files(bundle)
            now = replace(entry, name=name, commit=opened.commit, digest=digest, files=files)
        else:
            now = entry
        with changing(shelf, "add") as work:
            if work.entries.get(key) != entry:
                raise LockMismatch(key, "somebody changed it meanwhile")
            if (found := _as_it_is(shelf, key, entry, frozen=frozen)) is not None:
                return found
            work.put(key, now, states_of(bundle))
    except SkillhallError as error:
        return Restored(key, Status.FAILED, error)
    return Restored(key, Status.INSTALLED)


def _as_it_is(shelf: Shelf, key: str, entry: LockEntry, *, frozen: bool) -> Restored | None:
    """What is said of a skill that stays as it is; `None` if it is missing somewhere."""
    places = verify_entry(shelf, key, entry)
    if all(place.is_right for place in places):
        return Restored(key, Status.THERE)
    if any(place.is_there and not place.is_right for place in places):
        error = LockMismatch(key, "its files were edited") if frozen else None
        return Restored(key, Status.EDITED, error)
    return None


def _adopt(
    shelf: Shelf, other: ForeignEntry, progress: Progress | None, *, frozen: bool
) -> Restored:
    """Install a skill that another tool has noted; if frozen, only what it has noted."""
    key = f"{UNIVERSAL}/{other.name}"
    text = other.as_reference()
    if read_installed(shelf, key) is not None:
        return Restored(key, Status.THERE)
    try:
        if text is None:
            raise SourceRejected("url", other.source, "its kind of source is not one we know")
        settings = shelf.settings._replace(working_directory=shelf.root)
        opened = open_source(text, settings, progress)
        bundle = choose(opened.bundles, [] if len(opened.bundles) == 1 else [other.name])[0]
        if frozen and not _is_as_noted(other, bundle):
            raise LockMismatch(key, "its source has other files")
        report = install(shelf, opened, [bundle], Placement())
        if any(one.reason == "rejected" for one in report.skipped):
            raise SkillRejected(key, [one.finding.message for one in report.findings])
    except SkillhallError as error:
        return Restored(key, Status.FAILED, error)
    return Restored(key, Status.INSTALLED if report.added else Status.THERE)


def _is_as_noted(other: ForeignEntry, bundle: Bundle) -> bool:
    files = {path: Content(file.read(), file.executable) for path, file in bundle.files.items()}
    plain = {path: content.data for path, content in files.items()}
    return not is_comparable(plain) or other.hash in {computed_hash(plain), git_tree_id(files)}
