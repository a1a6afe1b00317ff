"""Positions: texts that order the blocks of a zone, with room for another between any two.

A position is a fraction in base 62, written with at least eight digits and without zeros at its end
after those. Texts of that form compare, byte by byte, as the fractions do.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
