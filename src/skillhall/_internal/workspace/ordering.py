"""Where a block goes: beside another one, or at an end of its zone."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.workspace.unit_of_work import is_id
from skillhall.errors import Displaced, FieldRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.storage.records import Zone
    from skillhall._internal.workspace.unit_of_work import Change


class Place(NamedTuple):
    """A place in a zone: after a block, before one, at the beginning, else at the end."""

    after: str = ""  # ids of blocks
    before: str = ""
    first: bool = False


END = Place()


class Spot(NamedTuple):
    """A place that was found: the position, and which block stands before it."""

    position: str
    after: str  # an id, or nothing


def find_spot(change: Change, zone: Zone, place: Place, moving: str = "") -> Spot:
    """The position of a place, for a new block or for one that is `moving`.

    Raises: Displaced if the block beside it is not in the zone, FieldRefused.
    """
    if bool(place.after) + bool(place.before) + place.first > 1:
        raise FieldRefused("place", "a block stands after one, before one, or first")
    if moving and moving in (place.after, place.before):
        raise FieldRefused("place", "a block cannot stand beside itself")
    low, high = _neighbours(change, zone, place, moving)
    position = between(low[1], high[1])
    if len(position) > LONGEST:
        position = _with_more_room(change, zone, high[0], moving)
    return Spot(position, low[0])


_NOBODY = ("", "")


def _neighbours(
    change: Change, zone: Zone, place: Place, moving: str
) -> tuple[tuple[str, str], tuple[str, str]]:
    """The ids and positions of the blocks on both sides, as if the moving one were not there."""
    if place.after:
        low = place.after, _key(change, zone, place.after)
        return low, _step(change, zone, low[1], moving, forward=True)
    if place.before:
        high = place.before, _key(change, zone, place.before)
        return _step(change, zone, high[1], moving, forward=False), high
    if place.first:
        return _NOBODY, _step(change, zone, "", moving, forward=True)
    return _step(change, zone, "", moving, forward=False), _NOBODY


def _step(change: Change, zone: Zone, key: str, moving: str, *, forward: bool) -> tuple[str, str]:
    look = change.write.following if forward else change.write.preceding
    found = look(change.session.id, zone, key)
    if found is not None and found[0] == moving:
        found = look(change.session.id, zone, found[1])
    return found or _NOBODY


def _key(change: Change, zone: Zone, identity: str) -> str:
    block = change.write.block(change.session.id, identity) if is_id(identity) else None
    if block is None or block.deleted is not None or block.zone is not zone:
        raise Displaced(identity)
    return block.position


def _with_more_room(change: Change, zone: Zone, high: str, moving: str) -> str:
    """A position where too many were put between the same two: the neighbours move apart."""
    session = change.session.id
    keys = [one for one in change.write.keys(session, zone) if one[0] != moving]
    at = next((n for n, one in enumerate(keys) if one[0] == high), len(keys))
    first, end, found = window(keys, at)
    own = found.pop(at - first)
    moved = [(one[0], key) for one, key in zip(keys[first:end], found, strict=True)]
    change.write.place_blocks(session, moved)
    return own


LONGEST = 24  # digits; beyond it, neighbours are given more room
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_BASE = len(_DIGITS)
_HEAD = 8  # digits that every position has
_STEP = 1 << 20  # between blocks that are put one after the other
_END = _BASE**_HEAD


def between(low: str, high: str) -> str:
    """A position after `low` and before `high`; an empty text stands for no bound."""
    if not low and not high:
        return _written(_END // 2, _HEAD)
    if not high and (after := _value(low, _HEAD) + _STEP) < _END:
        return _written(after, _HEAD)
    if not low and (before := _value(high, _HEAD) - _STEP) > 0:
        return _written(before, _HEAD)
    return spread(low, high, 1)[0]


def after_each_other(low: str, number: int) -> list[str]:
    """So many positions at the end of a zone whose last one is `low`."""
    found: list[str] = []
    for _ in range(number):
        low = between(low, "")
        found.append(low)
    return found


def spread(low: str, high: str, number: int) -> list[str]:
    """So many positions between two others, as far from each other as they can be."""
    for digits in count(_HEAD):
        first = _value(low, digits) if low else 0
        end = _value(high, digits) if high else _BASE**digits
        # The first may have lost digits here; the number after it is surely beyond.
        if end - first - 1 > number:
            step = end - first
            return [_written(first + step * n // (number + 1), digits) for n in _steps(number)]
    raise AssertionError  # a longer position can always be written


def window(keys: Sequence[tuple[str, str]], at: int) -> tuple[int, int, list[str]]:
    """Which neighbours of a crowded place need other positions, and which these are.

    `keys` are the ids and positions of the zone; a block will stand before the one at `at`. The
    answer has one position more than there are neighbours: the one for that block is in its turn.
    """
    reach = 8
    while True:
        first, end = max(0, at - reach), min(len(keys), at + reach)
        low = keys[first - 1][1] if first else ""
        high = keys[end][1] if end < len(keys) else ""
        found = spread(low, high, end - first + 1)
        is_all = first == 0 and end == len(keys)
        if is_all or max(map(len, found)) <= LONGEST // 2:
            return first, end, found
        reach *= 2


def _steps(number: int) -> range:
    return range(1, number + 1)


def _value(key: str, digits: int) -> int:
    value = 0
    for digit in key[:digits].ljust(digits, _DIGITS[0]):
        value = value * _BASE + _VALUES[digit]
    return value


def _written(value: int, digits: int) -> str:
    found = []
    for _ in range(digits):
        value, rest = divmod(value, _BASE)
        found.append(_DIGITS[rest])
    text = "".join(reversed(found))
    return text[:_HEAD] + text[_HEAD:].rstrip(_DIGITS[0])
