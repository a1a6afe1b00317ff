"""Order of blocks: positions are sortable strings with room between any two."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.workspace.unit_of_work import is_id
from skillhall.errors import BlockMovedError, FieldRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.storage.records import Zone
    from skillhall._internal.workspace.unit_of_work import SessionChange


class BlockPlacement(NamedTuple):
    """Where a block goes: after or before another block, first, or (default) last."""

    after: str = ""  # id of a block
    before: str = ""  # id of a block
    first: bool = False


AT_END = BlockPlacement()


class BlockPosition(NamedTuple):
    """A free position and the block before it."""

    position: str
    after: str  # id of a block, or ""


def find_position(
    change: SessionChange, zone: Zone, placement: BlockPlacement, moved_id: str = ""
) -> BlockPosition:
    """Return a position for a new block, or for the block `moved_id`.

    Raises: BlockMovedError if the neighbor is not in the zone, FieldRefused.
    """
    if bool(placement.after) + bool(placement.before) + placement.first > 1:
        raise FieldRefused("place", "only one of 'after', 'before' and 'first' can be set")
    if moved_id and moved_id in (placement.after, placement.before):
        raise FieldRefused("place", "a block cannot be placed next to itself")
    low, high = _find_neighbors(change, zone, placement, moved_id)
    position = position_between(low[1], high[1])
    if len(position) > MAX_POSITION_LENGTH:
        # A crowded part of the zone: its blocks get other positions, with room for this one.
        session = change.session.id
        rows = [row for row in change.writer.list_positions(session, zone) if row[0] != moved_id]
        at = next((n for n, row in enumerate(rows) if row[0] == high[0]), len(rows))
        first, end, positions = respread_window(rows, at)
        position = positions.pop(at - first)
        ids = (row[0] for row in rows[first:end])
        change.writer.set_positions(session, [*zip(ids, positions, strict=True)])
    return BlockPosition(position, low[0])


def _find_neighbors(
    change: SessionChange, zone: Zone, placement: BlockPlacement, moved_id: str
) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the id and position of the block on each side, except the moved block.

    Both are "" on a side without a block.
    """
    neighbor = placement.after or placement.before
    start = ""
    if neighbor:
        block = change.writer.block(change.session.id, neighbor) if is_id(neighbor) else None
        if block is None or block.deleted is not None or block.zone is not zone:
            raise BlockMovedError(neighbor)
        start = block.position
    is_forward = bool(placement.after) or placement.first
    find = change.writer.next_position if is_forward else change.writer.previous_position
    found = find(change.session.id, zone, start)
    if found is not None and found[0] == moved_id:
        found = find(change.session.id, zone, found[1])
    pair = (neighbor, start), found or ("", "")
    return pair if is_forward else (pair[1], pair[0])


MAX_POSITION_LENGTH = 24  # digits; if exceeded, the neighbors are spread out
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_BASE = len(_DIGITS)
_MIN_DIGITS = 8
_APPEND_STEP = 1 << 20  # distance between appended blocks
_VALUE_LIMIT = _BASE**_MIN_DIGITS


def position_between(low: str, high: str) -> str:
    """Return a position after `low` and before `high`; "" means no bound."""
    if not low and not high:
        return _to_position(_VALUE_LIMIT // 2, _MIN_DIGITS)
    if not high and (after := _to_int(low, _MIN_DIGITS) + _APPEND_STEP) < _VALUE_LIMIT:
        return _to_position(after, _MIN_DIGITS)
    if not low and (before := _to_int(high, _MIN_DIGITS) - _APPEND_STEP) > 0:
        return _to_position(before, _MIN_DIGITS)
    return spread_positions(low, high, 1)[0]


def positions_after(low: str, number: int) -> list[str]:
    """Return `number` positions for the end of a zone whose last position is `low`."""
    positions: list[str] = []
    for _ in range(number):
        low = position_between(low, "")
        positions.append(low)
    return positions


def spread_positions(low: str, high: str, number: int) -> list[str]:
    """Return `number` evenly spaced positions between `low` and `high`."""
    for digits in count(_MIN_DIGITS):
        first = _to_int(low, digits) if low else 0
        end = _to_int(high, digits) if high else _BASE**digits
        # `low` may be cut off at `digits`; only the next value is certain to be after it.
        gap = end - first
        if gap - 1 > number:
            offsets = (gap * n // (number + 1) for n in range(1, number + 1))
            return [_to_position(first + offset, digits) for offset in offsets]
    raise AssertionError  # more digits always make room


def respread_window(rows: Sequence[tuple[str, str]], at: int) -> tuple[int, int, list[str]]:
    """Return a range of `rows` around index `at`, and new positions for it.

    `rows` are the ids and positions of the zone. There is one position more than there are rows in
    the range, because a block will be inserted before `rows[at]`.
    """
    reach = 8
    while True:
        first, end = max(0, at - reach), min(len(rows), at + reach)
        low = rows[first - 1][1] if first else ""
        high = rows[end][1] if end < len(rows) else ""
        positions = spread_positions(low, high, end - first + 1)
        is_all = first == 0 and end == len(rows)
        # Half the maximum length leaves room for many more blocks at the same index.
        if is_all or max(map(len, positions)) <= MAX_POSITION_LENGTH // 2:
            return first, end, positions
        reach *= 2


def _to_int(position: str, digits: int) -> int:
    value = 0
    for digit in position[:digits].ljust(digits, _DIGITS[0]):
        value = value * _BASE + _VALUES[digit]
    return value


def _to_position(value: int, digits: int) -> str:
    reversed_digits = []
    for _ in range(digits):
        value, digit = divmod(value, _BASE)
        reversed_digits.append(_DIGITS[digit])
    text = "".join(reversed(reversed_digits))
    # Trailing zeros are dropped, so that equal values give equal strings.
    return text[:_MIN_DIGITS] + text[_MIN_DIGITS:].rstrip(_DIGITS[0])
