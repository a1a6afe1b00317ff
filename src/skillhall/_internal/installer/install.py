"""Installing: skills from a source onto a shelf, noted in its lock."""

from __future__ import annotations

import os
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.lock import LockEntry, Target, locked_files, portable_source
from skillhall._internal.installer.preflight import AddReport, note, prepare
from skillhall._internal.installer.project import Installed, read_installed
from skillhall._internal.installer.transaction import changing
from skillhall._internal.skill.merge import FileState
from skillhall._internal.sources.ref import GitHubRef, GitRef, is_commit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall._internal.installer.preflight import Addition
    from skillhall._internal.installer.project import Shelf
    from skillhall._internal.installer.targets import Placement
    from skillhall._internal.installer.transaction import Files
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.opener import Opened


def install(  # noqa: PLR0913 - what, from where, to where, and how
    shelf: Shelf,
    opened: Opened,
    bundles: Iterable[Bundle],
    placement: Placement,
    *,
    overwrite: bool = False,
    dry_run: bool = False,
) -> AddReport:
    """Put the bundles on the shelf, and what they are and where they came from into its lock.

    A skill that is there already stays, unless it may be overwritten: then it can be brought back.
    All are checked before the first is written.
    Raises: LockInvalid, UnsafePath, WouldLose, NotASkill, OSError.
    """
    report = AddReport()
    whole = [opened.whole(bundle) for bundle in bundles]
    ready = prepare(whole, shelf.path(placement.folder), report)
    wanted = {
        f"{placement.folder}/{one.id}": (one, entry_for(shelf, opened, one, placement))
        for one in ready
    }
    if dry_run:
        known = shelf.lock().entries
        for key, (addition, entry) in wanted.items():
            plan = _planned(shelf, known.get(key), _Wish(key, addition, entry, overwrite))
            note(addition, report, is_free=plan.is_added)
    elif ready:
        with changing(shelf, "add") as work:
            plans = {
                key: _planned(shelf, work.entries.get(key), _Wish(key, one, entry, overwrite))
                for key, (one, entry) in wanted.items()
            }
            for key, plan in plans.items():
                if plan.entry is not None:
                    work.check(key, plan.places, plan.entry)
            for key, plan in plans.items():
                addition = wanted[key][0]
                if plan.entry is not None:
                    work.apply(key, plan.places, plan.entry, states_of(addition.bundle))
                note(addition, report, is_free=plan.is_added)
        report.notes += work.notes
    return report


def entry_for(shelf: Shelf, opened: Opened, addition: Addition, placement: Placement) -> LockEntry:
    """What the lock says about a skill that goes where `placement` says."""
    reference, base = opened.reference, shelf.settings.working_directory
    whole = opened.reference_of(addition.bundle)
    targets = (Target(f"{folder}/{addition.id}", placement.kind) for folder in placement.others)
    return LockEntry(
        source=portable_source(whole, shelf.root, base),
        path=opened.path_of(addition.bundle),
        commit=opened.commit,
        digest=addition.digest,
        files=locked_files(addition.bundle),
        targets=tuple(targets),
        pinned=isinstance(reference, GitHubRef | GitRef) and is_commit(reference.ref),
        name=addition.name,
    )


def states_of(bundle: Bundle) -> dict[str, FileState]:
    """The files of a bundle, read."""
    return {path: FileState(file.read(), file.executable) for path, file in bundle.files.items()}


class _Wish(NamedTuple):
    """One skill, where it should go, and what the lock should say."""

    key: str
    addition: Addition
    entry: LockEntry
    overwrite: bool


class _Plan(NamedTuple):
    """What will be done for a wish; without an entry, nothing."""

    is_added: bool
    entry: LockEntry | None = None
    places: Mapping[str, Files | None] = MappingProxyType({})


def _planned(shelf: Shelf, before: LockEntry | None, wish: _Wish) -> _Plan:
    files = states_of(wish.addition.bundle)
    known = {target.path: target for target in before.targets} if before else {}
    new = [target for target in wish.entry.targets if target.path not in known]
    entry = replace(wish.entry, targets=(*known.values(), *new), more=before.more if before else {})
    copies = [wish.key, *entry.copies()]
    if wish.overwrite:
        in_the_way = [one for one in entry.links() if _is_taken(shelf, one, wish.key)]
        places = {**dict.fromkeys(copies, files), **dict.fromkeys(in_the_way)}
        return _Plan(is_added=True, entry=entry, places=places)
    present = {place: read_installed(shelf, place) for place in copies}
    free = [place for place, found in present.items() if found in (None, Installed(files))]
    taken = [
        one.path
        for one in new
        if (_is_taken(shelf, one.path, wish.key) if one.kind == "link" else one.path not in free)
    ]
    if taken or wish.key not in free:
        return _Plan(is_added=False)
    # The same skill may be wanted for one more agent; else it is just noted where it was not yet.
    is_added = present[wish.key] is None or bool(new)
    is_wanted = is_added or before is None
    return _Plan(is_added, entry if is_wanted else None, dict.fromkeys(free, files))


def _is_taken(shelf: Shelf, place: str, key: str) -> bool:
    """Whether something else than our link stands there."""
    return os.path.lexists(shelf.path(place)) and not shelf.leads_to(place, key)
