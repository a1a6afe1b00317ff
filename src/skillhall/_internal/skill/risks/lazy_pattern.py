"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property


class LazyPattern:
    """Pattern of a rule. Most texts need few of them, and all take 35 ms to compile."""

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Return the first match."""
        return self._compiled.search(text, start, end)

    def match(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Return the match at `start`."""
        return self._compiled.match(text, start, end)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Return the match of the complete text."""
        return self._compiled.fullmatch(text)

    def finditer(
        self, text: str, start: int = 0, end: int = sys.maxsize
    ) -> Iterator[re.Match[str]]:
        """Yield all matches."""
        return self._compiled.finditer(text, start, end)

    def findall(self, text: str) -> list[str]:
        """Return the text of all matches; the pattern has at most one group."""
        return self._compiled.findall(text)

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str) -> str:
        """Replace all matches."""
        return self._compiled.sub(replacement, text)

    def split(self, text: str) -> list[str]:
        """Return the text between the matches; the pattern has no group."""
        return self._compiled.split(text)
