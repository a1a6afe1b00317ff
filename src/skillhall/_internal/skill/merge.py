"""Three-way merges: what upstream changed and what a person changed since, both kept or neither."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import folded, sha256_of
from skillhall._internal.skill.line_diff import Hunk, find_hunks, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    _Sides: TypeAlias = tuple[list[str], list[str]]  # the lines of mine and of theirs


def merge_text(base: str, mine: str, theirs: str) -> str | None:
    """`base` with the changes of both sides; `None` if they touch each other, and so conflict.

    Line ends stay as they are. A text too large or too repetitive to compare is a conflict, too.
    """
    if theirs in (mine, base):
        return mine
    if mine == base:
        return theirs
    old, ours, others = split_lines(base), split_lines(mine), split_lines(theirs)
    my_hunks = find_hunks(old, ours)
    their_hunks = find_hunks(old, others) if my_hunks is not None else None
    if my_hunks is None or their_hunks is None:
        return None
    # Where repeated lines leave open what was changed, a merge must not depend on the guess.
    first, second = (
        _woven(old, (ours, others), regions) for regions in map(_regions, my_hunks, their_hunks)
    )
    return first if first == second else None


def _woven(old: list[str], sides: _Sides, regions: Iterable[_Region]) -> str | None:
    merged: list[str] = []
    at = 0
    for region in regions:
        lines = _changed_lines(region, sides)
        if lines is None:
            return None
        merged += [*old[at : region.start], *lines]
        at = region.end
    return "".join([*merged, *old[at:]])


class _Region(NamedTuple):
    """Lines of the base with the hunks of either side that touch each other there."""

    start: int
    end: int
    hunks: tuple[list[Hunk], list[Hunk]]


def _regions(ours: Sequence[Hunk], others: Sequence[Hunk]) -> Iterator[_Region]:
    """The regions that were changed, in order; one at least, as both sides differ from the base."""
    both = sorted([*((hunk, 0) for hunk in ours), *((hunk, 1) for hunk in others)])
    region = _Region(both[0][0].start, both[0][0].end, ([], []))
    for hunk, side in both:
        if hunk.start > region.end:
            yield region
            region = _Region(hunk.start, hunk.end, ([], []))
        region.hunks[side].append(hunk)
        region = region._replace(end=max(region.end, hunk.end))
    yield region


def _changed_lines(region: _Region, sides: _Sides) -> list[str] | None:
    """What stands for the region's lines on the side that changed them, or on both alike."""
    versions = [
        lines[
            hunks[0].new_start - (hunks[0].start - region.start) : hunks[-1].new_end
            + (region.end - hunks[-1].end)
        ]
        for hunks, lines in zip(region.hunks, sides, strict=True)
        if hunks
    ]
    return versions[0] if versions[0] == versions[-1] else None


class FileState(NamedTuple):
    """One file as it stands on a side."""

    data: bytes
    executable: bool


class Base(NamedTuple):
    """One file as both sides began with it; its bytes may be lost, its digest is known."""

    sha256: str  # 64 hexadecimal digits, without a prefix
    executable: bool
    data: bytes | None = None

    @classmethod
    def of(cls, state: FileState) -> Base:
        """A base with its bytes."""
        return cls(sha256_of(state.data), state.executable, state.data)


class Kind(StrEnum):
    """What a merge made of one path."""

    UNCHANGED = "unchanged"
    TAKEN = "taken"  # upstream changed a file that was not touched here
    ADDED = "added"
    REMOVED = "removed"  # upstream removed a file that was not touched here
    KEPT = "kept"  # changed, added or removed here only
    MERGED = "merged"  # changed on both sides, in different places
    SAME = "same"  # the same change on both sides
    CONFLICT = "conflict"


class Reason(StrEnum):
    """Why a path is in conflict."""

    BOTH_CHANGED = "both-changed"
    BOTH_ADDED = "both-added"
    REMOVED_HERE = "removed-here"  # and changed upstream
    REMOVED_UPSTREAM = "removed-upstream"  # and changed here
    CLASH = "clash"  # a new file that cannot stand beside another one


class Outcome(NamedTuple):
    """What became of one path; for a clash, the other path that it cannot stand beside."""

    path: str
    kind: Kind
    reason: Reason | None = None
    other: str = ""


class Merged(NamedTuple):
    """The files after a merge, and an outcome for each path; those in conflict stay as mine."""

    files: Mapping[str, FileState]
    outcomes: tuple[Outcome, ...]

    @property
    def conflicts(self) -> tuple[Outcome, ...]:
        """The outcomes that a person has to decide about."""
        return tuple(one for one in self.outcomes if one.kind is Kind.CONFLICT)


if TYPE_CHECKING:
    _Verdict: TypeAlias = tuple[FileState | None, Kind, Reason | None]


def merge_files(
    base: Mapping[str, Base], mine: Mapping[str, FileState], theirs: Mapping[str, FileState]
) -> Merged:
    """The files of a skill with the changes of both sides; with no base, nothing is overwritten."""
    files: dict[str, FileState] = {}
    outcomes: dict[str, Outcome] = {}
    for path in sorted({*base, *mine, *theirs}):
        state, kind, reason = _merge_file(base.get(path), mine.get(path), theirs.get(path))
        outcomes[path] = Outcome(path, kind, reason)
        if state is not None:
            files[path] = state
    for path, other in list(_clashes(files, [path for path in files if path not in mine])):
        del files[path]
        outcomes[path] = Outcome(path, Kind.CONFLICT, Reason.CLASH, other)
    return Merged(files, tuple(outcomes.values()))


def _merge_file(base: Base | None, mine: FileState | None, theirs: FileState | None) -> _Verdict:
    if mine == theirs:
        return mine, Kind.UNCHANGED if _is_base(mine, base) else Kind.SAME, None
    if _is_base(theirs, base):
        return mine, Kind.KEPT, None
    if _is_base(mine, base):
        return theirs, _kind_of_change(mine, theirs), None
    if mine is None or theirs is None:
        reason = Reason.REMOVED_HERE if mine is None else Reason.REMOVED_UPSTREAM
        return mine, Kind.CONFLICT, reason
    if base is None:
        return _merge_added(mine, theirs)
    return _merge_changed(base, mine, theirs)


def _kind_of_change(mine: FileState | None, theirs: FileState | None) -> Kind:
    if mine is None:
        return Kind.ADDED
    return Kind.REMOVED if theirs is None else Kind.TAKEN


def _merge_added(mine: FileState, theirs: FileState) -> _Verdict:
    if mine.data == theirs.data:  # they differ in the executable bit alone
        return mine, Kind.KEPT, None
    return mine, Kind.CONFLICT, Reason.BOTH_ADDED


def _merge_changed(base: Base, mine: FileState, theirs: FileState) -> _Verdict:
    data = _merge_data(base, mine.data, theirs.data)
    if data is None:
        return mine, Kind.CONFLICT, Reason.BOTH_CHANGED
    # Of two bits that differ, one is the base's and the other one is the change.
    executable = theirs.executable if mine.executable == base.executable else mine.executable
    return FileState(data, executable), Kind.MERGED, None


def _merge_data(base: Base, mine: bytes, theirs: bytes) -> bytes | None:
    if mine == theirs or sha256_of(theirs) == base.sha256:
        return mine
    if sha256_of(mine) == base.sha256:
        return theirs
    if base.data is None or any(b"\0" in data for data in (base.data, mine, theirs)):
        return None
    try:
        merged = merge_text(base.data.decode(), mine.decode(), theirs.decode())
    except UnicodeDecodeError:
        return None
    return None if merged is None else merged.encode()


def _is_base(state: FileState | None, base: Base | None) -> bool:
    if state is None or base is None:
        return state is None and base is None
    return (sha256_of(state.data), state.executable) == (base.sha256, base.executable)


def _clashes(files: Mapping[str, FileState], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """New paths that some system cannot keep beside another one, which comes with it."""
    by_key: dict[str, list[str]] = {}
    in_folder: dict[str, str] = {}
    for path in files:
        by_key.setdefault(folded(path), []).append(path)
        for folder in _folders(folded(path)):
            in_folder.setdefault(folder, path)
    for path in new:
        key = folded(path)
        above = (by_key.get(folder, [""])[0] for folder in _folders(key))
        equal = (one for one in by_key[key] if one != path)
        other = next(filter(None, (*equal, in_folder.get(key, ""), *above)), "")
        if other:
            yield path, other


def _folders(path: str) -> Iterator[str]:
    """The folders above a path."""
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
