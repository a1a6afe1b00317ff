"""Positions in a document: our parser's line numbers, and the client's columns."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from lsprotocol.types import Position, PositionEncodingKind, Range, TextEdit

_LINE_BREAK = re.compile(r"\r\n|\r|\n")


class TextLines:
    """The lines of a text, and conversions between offsets and positions."""

    def __init__(self, text: str, encoding: PositionEncodingKind | str | None) -> None:
        self.text = text
        self._encoding = encoding

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line."""
        return [0, *(match.end() for match in _LINE_BREAK.finditer(self.text))]

    def line(self, number: int) -> str:
        """Return a line without its line break; "" past the end."""
        if not 0 <= number < len(self.starts):
            return ""
        is_last = number + 1 == len(self.starts)
        end = len(self.text) if is_last else self.starts[number + 1]
        return self.text[self.starts[number] : end].rstrip("\r\n")

    def position(self, line: int, column: int) -> Position:
        """Return the position of a column in characters."""
        return Position(line, self._measure(self.line(line)[:column]))

    def position_at(self, offset: int) -> Position:
        """Return the position of an offset."""
        line = bisect_right(self.starts, offset) - 1
        return self.position(line, offset - self.starts[line])

    def column(self, position: Position) -> int:
        """Return the column of a position in characters."""
        units, text = 0, self.line(position.line)
        for column, character in enumerate(text):
            if units >= position.character:
                return column
            units += self._measure(character)
        return len(text)

    def span(self, line: int, start: int, end: int) -> Range:
        """Return the range between two columns of a line."""
        return Range(self.position(line, start), self.position(line, end))

    def line_range(self, line: int) -> Range:
        """Return the range of a line, or of the last one, without its indentation."""
        line = min(max(line, 0), len(self.starts) - 1)
        text = self.line(line)
        return self.span(line, len(text) - len(text.lstrip()), len(text))

    def build_edit(self, new: str) -> TextEdit:
        """Return one small edit that turns the text into `new`."""
        old = self.text
        start = _count_common(old, new)
        # The edit must not start or end in the middle of a line break.
        start -= start > 0 and old[start - 1 : start] == "\r"
        end = _count_common(old[start:][::-1], new[start:][::-1])
        stop = len(old) - end
        end -= end > 0 and old[stop : stop + 1] == "\n" and old[stop - 1 : stop] == "\r"
        edited = Range(self.position_at(start), self.position_at(len(old) - end))
        return TextEdit(edited, new[start : len(new) - end])

    def _measure(self, text: str) -> int:
        if text.isascii() or self._encoding == PositionEncodingKind.Utf32:
            return len(text)
        if self._encoding == PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(character > "\uffff" for character in text)


def _count_common(left: str, right: str) -> int:
    """Return the length of the common prefix, by binary search."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if left[:middle] == right[:middle] else (low, middle - 1)
    return low
