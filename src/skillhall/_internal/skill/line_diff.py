"""Line diff with a work limit: the hunks between two texts."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

MAX_LINES = 20_000  # of one text; the longest files of skills have a few thousand
_MAX_DIFFABLE = 256 * 1024  # bytes of a file
MAX_SEARCH_STEPS = 400_000  # of one search: a quarter of a second, or 900 moved lines


class Hunk(NamedTuple):
    """Lines of the old text and the new lines that replace them; ends are exclusive."""

    start: int
    end: int
    new_start: int
    new_end: int


class _EqualRun(NamedTuple):
    """Equal lines, from `x` in the old text and `y` in the new, and the previous run."""

    x: int
    y: int
    length: int
    previous: _EqualRun | None


_SearchState: TypeAlias = tuple[int, _EqualRun | None]  # an old line, and the path to it
_LinePairs: TypeAlias = list[tuple[int, int]]  # indexes of equal lines, old and new


def split_lines(text: str) -> list[str]:
    """Split after each LF. Other line breaks stay inside their line."""
    *lines, last = text.split("\n")
    return [*(f"{line}\n" for line in lines), *([last] if last else [])]


def is_diffable(data: bytes) -> bool:
    """Whether the file is UTF-8 text without NUL, and small enough for a diff."""
    if len(data) > _MAX_DIFFABLE or b"\0" in data:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def render_diff(old: bytes, new: bytes, old_name: str, new_name: str) -> str:
    """Return the unified diff of two files, as `patch` reads it."""
    # For `patch`, only "\n" ends a line; `splitlines` also splits at a dozen other characters.
    before, after = (split_lines(data.decode("utf-8", "surrogateescape")) for data in (old, new))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(before, after, old_name, new_name)
    )


def find_hunks(old: Sequence[str], new: Sequence[str]) -> tuple[list[Hunk], list[Hunk]] | None:
    """Return two minimal diffs of `old` and `new`; `None` if they take too much work.

    One is computed from the start, the other from the end. They may differ where lines repeat.
    A hunk that fits in several positions is put in the last one.
    """
    if max(len(old), len(new)) > MAX_LINES:
        return None
    both = _find_equal_lines(old, new)
    if both is None:
        return None
    first, second = (list(_find_gaps(pairs, len(old), len(new))) for pairs in both)
    return _push_down_hunks(old, new, first), _push_down_hunks(old, new, second)


def _find_equal_lines(
    old: Sequence[str], new: Sequence[str]
) -> tuple[_LinePairs, _LinePairs] | None:
    """Return two longest common subsequences; `None` if they take too much work.

    One is computed from the start, the other from the end. They are often the same.
    """
    ends = min(len(old), len(new))
    head = next((at for at in range(ends) if old[at] != new[at]), ends)
    ends -= head
    tail = next((at for at in range(ends) if old[-1 - at] != new[-1 - at]), ends)
    # Lines that only one text has cannot match, so the search leaves them out.
    common = set(old[head : len(old) - tail]).intersection(new[head : len(new) - tail])
    old_indexes = [at for at in range(head, len(old) - tail) if old[at] in common]
    new_indexes = [at for at in range(head, len(new) - tail) if new[at] in common]
    old_lines, new_lines = [old[at] for at in old_indexes], [new[at] for at in new_indexes]
    forward = _find_common_lines(old_lines, new_lines)
    backward = _find_common_lines(old_lines[::-1], new_lines[::-1]) if forward is not None else None
    if forward is None or backward is None:
        return None
    before = [(at, at) for at in range(head)]
    after = [(len(old) - at, len(new) - at) for at in range(tail, 0, -1)]
    first = ((old_indexes[x], new_indexes[y]) for x, y in forward)
    second = ((old_indexes[-1 - x], new_indexes[-1 - y]) for x, y in reversed(backward))
    return [*before, *first, *after], [*before, *second, *after]


def _find_common_lines(old: list[str], new: list[str]) -> _LinePairs | None:
    """Return a longest common subsequence; `None` if it takes too much work.

    Myers' greedy diff: with each edit, follow every diagonal as far as it goes.
    """
    # By diagonal: old index minus new index. The entry for 1 only starts the search.
    reached: dict[int, _SearchState] = {1: (0, None)}
    edits = work = 0
    while work <= MAX_SEARCH_STEPS:
        # Diagonals outside the grid are skipped.
        low, high = max(-edits, edits - 2 * len(new)), min(edits, 2 * len(old) - edits)
        for diagonal in range(low, high + 1, 2):
            # One edit on this diagonal: drop an old line or add a new one.
            added, dropped = reached.get(diagonal + 1), reached.get(diagonal - 1)
            if dropped is None or (added is not None and dropped[0] < added[0]):
                x, run = added or (0, None)
            else:
                x, run = dropped[0] + 1, dropped[1]
            y = x - diagonal
            length, limit = 0, min(len(old) - x, len(new) - y)
            while length < limit and old[x + length] == new[y + length]:
                length += 1
            if length:
                run = _EqualRun(x, y, length, run)
            if x + length >= len(old) and y + length >= len(new):
                runs = []
                while run is not None:
                    runs.append(run)
                    run = run.previous
                return [(r.x + at, r.y + at) for r in reversed(runs) for at in range(r.length)]
            reached[diagonal] = (x + length, run)
            work += length + 1
        edits += 1
    return None


def _find_gaps(pairs: _LinePairs, old_length: int, new_length: int) -> Iterator[Hunk]:
    """Yield the hunks between equal lines."""
    start = new_start = 0
    for old_at, new_at in [*pairs, (old_length, new_length)]:
        if old_at > start or new_at > new_start:
            yield Hunk(start, old_at, new_start, new_at)
        start, new_start = old_at + 1, new_at + 1


def _push_down_hunks(old: Sequence[str], new: Sequence[str], hunks: list[Hunk]) -> list[Hunk]:
    """Move each hunk down as far as possible and join hunks that touch."""
    settled: list[Hunk] = []  # from the last to the first
    for hunk in reversed(hunks):
        pushed = _push_down_hunk(old, new, hunk, settled[-1].start if settled else len(old))
        while settled and pushed.end == settled[-1].start:
            below = settled.pop()
            joined = Hunk(pushed.start, below.end, pushed.new_start, below.new_end)
            pushed = _push_down_hunk(old, new, joined, settled[-1].start if settled else len(old))
        settled.append(pushed)
    return settled[::-1]


def _push_down_hunk(old: Sequence[str], new: Sequence[str], hunk: Hunk, limit: int) -> Hunk:
    """Move a pure deletion or insertion down while the resulting text is the same."""
    start, end, new_start, new_end = hunk
    offset = 0
    if new_start == new_end:
        while end + offset < limit and old[start + offset] == old[end + offset]:
            offset += 1
    elif start == end:
        while end + offset < limit and new[new_start + offset] == new[new_end + offset]:
            offset += 1
    return Hunk(start + offset, end + offset, new_start + offset, new_end + offset)
