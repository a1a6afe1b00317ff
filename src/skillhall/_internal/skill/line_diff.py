"""What changed between two sequences of lines: hunks, found with bounded work."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

MAX_LINES = 20_000  # in one text; a skill's longest files have a few thousand
MAX_SEARCH_STEPS = 400_000  # steps of one search; a quarter of a second, or 900 moved lines


class Hunk(NamedTuple):
    """Lines `start` to `end` of the old text, and what stands for them in the new one."""

    start: int
    end: int
    new_start: int
    new_end: int

    def shift(self, offset: int) -> Hunk:
        """The same number of lines, `by` further down."""
        return Hunk(
            self.start + offset, self.end + offset, self.new_start + offset, self.new_end + offset
        )


class _EqualRun(NamedTuple):
    """Equal lines from `x` in the old and `y` in the new text on; and the run before them."""

    x: int
    y: int
    length: int
    previous: _EqualRun | None


if TYPE_CHECKING:
    _SearchState: TypeAlias = tuple[
        int, _EqualRun | None
    ]  # a line of the old text, and the way to it
    _LinePairs: TypeAlias = list[tuple[int, int]]  # places of equal lines in the old and new text


def split_lines(text: str) -> list[str]:
    """The lines with their ends as they are; only a line feed ends a line."""
    *whole, last = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([last] if last else [])]


def find_hunks(old: Sequence[str], new: Sequence[str]) -> tuple[list[Hunk], list[Hunk]] | None:
    """The fewest changes that lead from `old` to `new`; `None` if finding them takes too long.

    They are looked for from the start and from the end: where lines repeat, the two may differ.
    A change that could stand in several places stands in the last of them.
    """
    if max(len(old), len(new)) > MAX_LINES:
        return None
    found = _find_equal_lines(old, new)
    if found is None:
        return None
    first, second = (list(_find_gaps(pairs, len(old), len(new))) for pairs in found)
    return _push_down_hunks(old, new, first), _push_down_hunks(old, new, second)


def _find_equal_lines(
    old: Sequence[str], new: Sequence[str]
) -> tuple[_LinePairs, _LinePairs] | None:
    """The places of two longest common subsequences, often the same."""
    ends = min(len(old), len(new))
    head = next((at for at in range(ends) if old[at] != new[at]), ends)
    ends -= head
    tail = next((at for at in range(ends) if old[-1 - at] != new[-1 - at]), ends)
    # A line that the other text does not have is no part of the search.
    common = set(old[head : len(old) - tail]).intersection(new[head : len(new) - tail])
    old_places = [at for at in range(head, len(old) - tail) if old[at] in common]
    new_places = [at for at in range(head, len(new) - tail) if new[at] in common]
    old_lines, new_lines = [old[at] for at in old_places], [new[at] for at in new_places]
    forward = _find_common_lines(old_lines, new_lines)
    backward = _find_common_lines(old_lines[::-1], new_lines[::-1]) if forward is not None else None
    if forward is None or backward is None:
        return None
    before = [(at, at) for at in range(head)]
    after = [(len(old) - at, len(new) - at) for at in range(tail, 0, -1)]
    found = ((old_places[x], new_places[y]) for x, y in forward)
    found_backward = ((old_places[-1 - x], new_places[-1 - y]) for x, y in reversed(backward))
    return [*before, *found, *after], [*before, *found_backward, *after]


def _find_common_lines(old: list[str], new: list[str]) -> _LinePairs | None:
    """Myers' greedy search: with each further edit, how far every diagonal can be followed."""
    reached: dict[int, _SearchState] = {1: (0, None)}
    edits = work = 0
    while work <= MAX_SEARCH_STEPS:
        # Diagonals that left the grid lead nowhere.
        low, high = max(-edits, edits - 2 * len(new)), min(edits, 2 * len(old) - edits)
        for diagonal in range(low, high + 1, 2):
            x, run = _advance(reached, diagonal)
            y = x - diagonal
            length = _count_equal_lines(old, new, x, y)
            if length:
                run = _EqualRun(x, y, length, run)
            if x + length >= len(old) and y + length >= len(new):
                return _collect_pairs(run)
            reached[diagonal] = (x + length, run)
            work += length + 1
        edits += 1
    return None


def _advance(reached: dict[int, _SearchState], diagonal: int) -> _SearchState:
    """Where one more edit leads on this diagonal: an old line dropped, or a new one added."""
    added, dropped = reached.get(diagonal + 1), reached.get(diagonal - 1)
    if dropped is None or (added is not None and dropped[0] < added[0]):
        return added or (0, None)
    return dropped[0] + 1, dropped[1]


def _count_equal_lines(old: list[str], new: list[str], x: int, y: int) -> int:
    start, end = x, min(len(old), len(new) - y + x)
    shift = y - x
    while x < end and old[x] == new[x + shift]:
        x += 1
    return x - start


def _collect_pairs(run: _EqualRun | None) -> _LinePairs:
    runs = []
    while run is not None:
        runs.append(run)
        run = run.previous
    return [(one.x + at, one.y + at) for one in reversed(runs) for at in range(one.length)]


def _find_gaps(pairs: _LinePairs, old_length: int, new_length: int) -> Iterator[Hunk]:
    """The gaps that equal lines leave."""
    start = new_start = 0
    for old_at, new_at in [*pairs, (old_length, new_length)]:
        if old_at > start or new_at > new_start:
            yield Hunk(start, old_at, new_start, new_at)
        start, new_start = old_at + 1, new_at + 1


def _push_down_hunks(old: Sequence[str], new: Sequence[str], hunks: list[Hunk]) -> list[Hunk]:
    """Each hunk as far down as it can stand; hunks that meet are one."""
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
    """Lines that were only dropped, or only added, moved down while the text stays the same."""
    start, end, new_start, new_end = hunk
    by = 0
    if new_start == new_end:
        while end + by < limit and old[start + by] == old[end + by]:
            by += 1
    elif start == end:
        while end + by < limit and new[new_start + by] == new[new_end + by]:
            by += 1
    return hunk.shift(by)
