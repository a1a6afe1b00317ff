"""Where a block goes: beside another one, or at an end of its zone."""

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
    """A place in a zone: after a block, before one, at the beginning, else at the end."""

    after: str = ""  # ids of blocks
    before: str = ""
    first: bool = False


AT_END = BlockPlacement()


class BlockPosition(NamedTuple):
    """A place that was found: the position, and which block stands before it."""

    position: str
    after: str  # an id, or nothing


def find_position(
    change: SessionChange, zone: Zone, placement: BlockPlacement, moved_id: str = ""
) -> BlockPosition:
    """The position of a place, for a new block or for one that is `moving`.

    Raises: BlockMovedError if the block beside it is not in the zone, FieldRefused.
    """
    if bool(placement.after) + bool(placement.before) + placement.first > 1:
        raise FieldRefused("place", "a block stands after one, before one, or first")
    if moved_id and moved_id in (placement.after, placement.before):
        raise FieldRefused("place", "a block cannot stand beside itself")
    low, high = _find_neighbors(change, zone, placement, moved_id)
    position = position_between(low[1], high[1])
    if len(position) > MAX_POSITION_LENGTH:
        position = _respread_neighbors(change, zone, high[0], moved_id)
    return BlockPosition(position, low[0])


_NO_NEIGHBOR = ("", "")


def _find_neighbors(
    change: SessionChange, zone: Zone, placement: BlockPlacement, moved_id: str
) -> tuple[tuple[str, str], tuple[str, str]]:
    """The ids and positions of the blocks on both sides, as if the moving one were not there."""
    if placement.after:
        low = placement.after, _get_position(change, zone, placement.after)
        return low, _find_adjacent(change, zone, low[1], moved_id, forward=True)
    if placement.before:
        high = placement.before, _get_position(change, zone, placement.before)
        return _find_adjacent(change, zone, high[1], moved_id, forward=False), high
    if placement.first:
        return _NO_NEIGHBOR, _find_adjacent(change, zone, "", moved_id, forward=True)
    return _find_adjacent(change, zone, "", moved_id, forward=False), _NO_NEIGHBOR


def _find_adjacent(
    change: SessionChange, zone: Zone, position: str, moved_id: str, *, forward: bool
) -> tuple[str, str]:
    look = change.writer.next_position if forward else change.writer.previous_position
    found = look(change.session.id, zone, position)
    if found is not None and found[0] == moved_id:
        found = look(change.session.id, zone, found[1])
    return found or _NO_NEIGHBOR


def _get_position(change: SessionChange, zone: Zone, identity: str) -> str:
    block = change.writer.block(change.session.id, identity) if is_id(identity) else None
    if block is None or block.deleted is not None or block.zone is not zone:
        raise BlockMovedError(identity)
    return block.position


def _respread_neighbors(change: SessionChange, zone: Zone, next_id: str, moved_id: str) -> str:
    """A position where too many were put between the same two: the neighbours move apart."""
    session = change.session.id
    keys = [one for one in change.writer.list_positions(session, zone) if one[0] != moved_id]
    at = next((n for n, one in enumerate(keys) if one[0] == next_id), len(keys))
    first, end, found = respread_window(keys, at)
    own = found.pop(at - first)
    moved = [(one[0], key) for one, key in zip(keys[first:end], found, strict=True)]
    change.writer.set_positions(session, moved)
    return own


MAX_POSITION_LENGTH = 24  # digits; beyond it, neighbours are given more room
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_BASE = len(_DIGITS)
_MIN_DIGITS = 8  # digits that every position has
_APPEND_STEP = 1 << 20  # between blocks that are put one after the other
_VALUE_LIMIT = _BASE**_MIN_DIGITS


def position_between(low: str, high: str) -> str:
    """A position after `low` and before `high`; an empty text stands for no bound."""
    if not low and not high:
        return _to_position(_VALUE_LIMIT // 2, _MIN_DIGITS)
    if not high and (after := _to_int(low, _MIN_DIGITS) + _APPEND_STEP) < _VALUE_LIMIT:
        return _to_position(after, _MIN_DIGITS)
    if not low and (before := _to_int(high, _MIN_DIGITS) - _APPEND_STEP) > 0:
        return _to_position(before, _MIN_DIGITS)
    return spread_positions(low, high, 1)[0]


def positions_after(low: str, number: int) -> list[str]:
    """So many positions at the end of a zone whose last one is `low`."""
    found: list[str] = []
    for _ in range(number):
        low = position_between(low, "")
        found.append(low)
    return found


def spread_positions(low: str, high: str, number: int) -> list[str]:
    """So many positions between two others, as far from each other as they can be."""
    for digits in count(_MIN_DIGITS):
        first = _to_int(low, digits) if low else 0
        end = _to_int(high, digits) if high else _BASE**digits
        # The first may have lost digits here; the number after it is surely beyond.
        if end - first - 1 > number:
            step = end - first
            return [
                _to_position(first + step * n // (number + 1), digits)
                for n in _range_from_one(number)
            ]
    raise AssertionError  # a longer position can always be written


def respread_window(keys: Sequence[tuple[str, str]], at: int) -> tuple[int, int, list[str]]:
    """Which neighbours of a crowded place need other positions, and which these are.

    `keys` are the ids and positions of the zone; a block will stand before the one at `at`. The
    answer has one position more than there are neighbours: the one for that block is in its turn.
    """
    reach = 8
    while True:
        first, end = max(0, at - reach), min(len(keys), at + reach)
        low = keys[first - 1][1] if first else ""
        high = keys[end][1] if end < len(keys) else ""
        found = spread_positions(low, high, end - first + 1)
        is_all = first == 0 and end == len(keys)
        if is_all or max(map(len, found)) <= MAX_POSITION_LENGTH // 2:
            return first, end, found
        reach *= 2


def _range_from_one(number: int) -> range:
    return range(1, number + 1)


def _to_int(key: str, digits: int) -> int:
    value = 0
    for digit in key[:digits].ljust(digits, _DIGITS[0]):
        value = value * _BASE + _VALUES[digit]
    return value


def _to_position(value: int, digits: int) -> str:
    found = []
    for _ in range(digits):
        value, rest = divmod(value, _BASE)
        found.append(_DIGITS[rest])
    text = "".join(reversed(found))
    return text[:_MIN_DIGITS] + text[_MIN_DIGITS:].rstrip(_DIGITS[0])
