"""Three-way merge of the files of a skill: local and upstream changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from skillhall._internal.skill.bundle import fold_name, parent_folders, sha256_hex
from skillhall._internal.skill.line_diff import Hunk, find_hunks, split_lines

_Sides: TypeAlias = tuple[list[str], list[str]]  # local and upstream lines


def merge_text(base: str, local: str, upstream: str) -> str | None:
    """Return `base` with the changes of both sides, or `None` on a conflict.

    Different changes conflict if they overlap or touch. Texts also conflict if they are too large
    to compare, or if repeated lines allow different merges. Line endings stay as they are.
    """
    if upstream in (local, base):
        return local
    if local == base:
        return upstream
    old, sides = split_lines(base), (split_lines(local), split_lines(upstream))
    local_hunks = find_hunks(old, sides[0])
    upstream_hunks = find_hunks(old, sides[1]) if local_hunks is not None else None
    if local_hunks is None or upstream_hunks is None:
        return None
    # With repeated lines, two diffs may be equally short. The merge must not depend on the choice.
    first, second = (
        _apply_regions(old, sides, regions)
        for regions in map(_group_regions, local_hunks, upstream_hunks)
    )
    return first if first == second else None


def _apply_regions(old: list[str], sides: _Sides, regions: Iterable[_Region]) -> str | None:
    merged: list[str] = []
    at = 0
    for region in regions:
        versions = []
        for hunks, lines in zip(region.hunks, sides, strict=True):
            if hunks:
                start = hunks[0].new_start - (hunks[0].start - region.start)
                versions.append(lines[start : hunks[-1].new_end + (region.end - hunks[-1].end)])
        # Only one side changed the region, or both agree; otherwise it is a conflict.
        if versions[0] != versions[-1]:
            return None
        merged += [*old[at : region.start], *versions[0]]
        at = region.end
    return "".join([*merged, *old[at:]])


class _Region(NamedTuple):
    """Lines of the base, with the hunks of both sides that overlap or touch there."""

    start: int
    end: int
    hunks: tuple[list[Hunk], list[Hunk]]


def _group_regions(local: Sequence[Hunk], upstream: Sequence[Hunk]) -> Iterator[_Region]:
    """Yield the changed regions in order."""
    # Both sides differ from the base, so there is at least one hunk.
    both = sorted([*((hunk, 0) for hunk in local), *((hunk, 1) for hunk in upstream)])
    region = _Region(both[0][0].start, both[0][0].end, ([], []))
    for hunk, side in both:
        if hunk.start > region.end:
            yield region
            region = _Region(hunk.start, hunk.end, ([], []))
        region.hunks[side].append(hunk)
        region = region._replace(end=max(region.end, hunk.end))
    yield region


class FileState(NamedTuple):
    """One file on one side of the merge."""

    data: bytes
    executable: bool = False


class MergeBase(NamedTuple):
    """One file of the common base; `data` is `None` if only its digest is known."""

    sha256: str  # 64 hexadecimal digits, without a prefix
    executable: bool
    data: bytes | None = None

    @classmethod
    def from_file_state(cls, state: FileState) -> MergeBase:
        """Build the base entry of a file whose bytes are known."""
        return cls(sha256_hex(state.data), state.executable, state.data)


class MergeKind(StrEnum):
    """The result of a merge for one path."""

    UNCHANGED = "unchanged"
    TAKEN_UPSTREAM = "taken"  # changed upstream, not here
    ADDED = "added"
    REMOVED = "removed"  # removed upstream, not changed here
    KEPT_LOCAL = "kept"  # changed, added or removed here only
    MERGED = "merged"  # changed on both sides, in different places
    SAME = "same"  # the same change on both sides
    CONFLICT = "conflict"


class ConflictReason(StrEnum):
    """Why a path is in conflict."""

    BOTH_CHANGED = "both-changed"
    BOTH_ADDED = "both-added"
    REMOVED_HERE = "removed-here"  # and changed upstream
    REMOVED_UPSTREAM = "removed-upstream"  # and changed here
    CLASH = "clash"  # some file systems cannot store the new file next to another one


class MergeOutcome(NamedTuple):
    """The result for one path; for a clash, also the path it clashes with."""

    path: str
    kind: MergeKind
    reason: ConflictReason | None = None
    clashing_path: str = ""


class MergeResult(NamedTuple):
    """Merged files and one outcome per path; a conflict keeps the local version."""

    files: Mapping[str, FileState]
    outcomes: tuple[MergeOutcome, ...]

    @property
    def conflicts(self) -> tuple[MergeOutcome, ...]:
        """The outcomes that the user has to resolve."""
        return tuple(o for o in self.outcomes if o.kind is MergeKind.CONFLICT)


_FileMerge: TypeAlias = tuple[FileState | None, MergeKind, ConflictReason | None]


def merge_files(
    base: Mapping[str, MergeBase], local: Mapping[str, FileState], upstream: Mapping[str, FileState]
) -> MergeResult:
    """Merge the files of a skill. Without a base, no local file is overwritten."""
    files: dict[str, FileState] = {}
    outcomes: dict[str, MergeOutcome] = {}
    for path in sorted({*base, *local, *upstream}):
        state, kind, reason = _merge_file(base.get(path), local.get(path), upstream.get(path))
        outcomes[path] = MergeOutcome(path, kind, reason)
        if state is not None:
            files[path] = state
    for path, other in list(_find_clashes(files, [path for path in files if path not in local])):
        del files[path]
        outcomes[path] = MergeOutcome(path, MergeKind.CONFLICT, ConflictReason.CLASH, other)
    return MergeResult(files, tuple(outcomes.values()))


def _merge_file(
    base: MergeBase | None, local: FileState | None, upstream: FileState | None
) -> _FileMerge:
    if local == upstream:
        return local, MergeKind.UNCHANGED if _equals_base(local, base) else MergeKind.SAME, None
    if _equals_base(upstream, base):
        return local, MergeKind.KEPT_LOCAL, None
    if _equals_base(local, base):
        changed = MergeKind.REMOVED if upstream is None else MergeKind.TAKEN_UPSTREAM
        return upstream, MergeKind.ADDED if local is None else changed, None
    if local is None or upstream is None:
        reason = ConflictReason.REMOVED_HERE if local is None else ConflictReason.REMOVED_UPSTREAM
        return local, MergeKind.CONFLICT, reason
    return _merge_both_sides(base, local, upstream)


def _merge_both_sides(base: MergeBase | None, local: FileState, upstream: FileState) -> _FileMerge:
    """Merge a file that both sides changed or added."""
    if base is None:
        if local.data == upstream.data:  # they differ in the executable bit alone
            return local, MergeKind.KEPT_LOCAL, None
        return local, MergeKind.CONFLICT, ConflictReason.BOTH_ADDED
    data: bytes | None = None
    if local.data == upstream.data or sha256_hex(upstream.data) == base.sha256:
        data = local.data
    elif sha256_hex(local.data) == base.sha256:
        data = upstream.data
    elif base.data is not None and b"\0" not in base.data + local.data + upstream.data:
        with suppress(UnicodeDecodeError):
            texts = [version.decode() for version in (base.data, local.data, upstream.data)]
            merged = merge_text(*texts)
            data = None if merged is None else merged.encode()
    if data is None:
        return local, MergeKind.CONFLICT, ConflictReason.BOTH_CHANGED
    # If the two executable bits differ, one of them equals the base and the other is the change.
    executable = upstream.executable if local.executable == base.executable else local.executable
    return FileState(data, executable), MergeKind.MERGED, None


def _equals_base(state: FileState | None, base: MergeBase | None) -> bool:
    if state is None or base is None:
        return state is None and base is None
    return (sha256_hex(state.data), state.executable) == (base.sha256, base.executable)


def _find_clashes(files: Mapping[str, FileState], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of a new path and a path that it clashes with on some file systems."""
    by_key: dict[str, list[str]] = {}
    in_folder: dict[str, str] = {}
    for path in files:
        by_key.setdefault(fold_name(path), []).append(path)
        for folder in parent_folders(fold_name(path)):
            in_folder.setdefault(folder, path)
    for path in new:
        key = fold_name(path)
        above = (by_key.get(folder, [""])[0] for folder in parent_folders(key))
        equal = (same for same in by_key[key] if same != path)
        other = next(filter(None, (*equal, in_folder.get(key, ""), *above)), "")
        if other:
            yield path, other
