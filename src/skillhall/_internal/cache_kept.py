"""A bounded memory of values that are costly to make and never change."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class _Entry(Generic[T]):
    __slots__ = ("size", "used", "value")

    def __init__(self, value: T, size: int) -> None:
        self.value = value
        self.size = size
        self.used = False


class Kept(Generic[T]):
    """Values by name, up to a number of bytes. Whoever finds a value waits for nobody.

    When room is needed the oldest value goes, unless somebody asked for it since the last time it
    was its turn. Two threads that miss the same value both make it: it is the same.
    """

    def __init__(self, at_most: int, weigh: Callable[[T], int]) -> None:
        self._at_most = at_most
        self._weigh = weigh
        self._entries: dict[str, _Entry[T]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def value(self, name: str, make: Callable[[], T]) -> T:
        """The value of that name, made if it is not here."""
        entry = self._entries.get(name)
        if entry is not None:
            entry.used = True
            return entry.value
        made = make()
        self._keep(name, _Entry(made, self._weigh(made)))
        return made

    def _keep(self, name: str, entry: _Entry[T]) -> None:
        if entry.size > self._at_most:
            return
        with self._lock:
            if name in self._entries:
                return
            while self._size + entry.size > self._at_most:
                self._drop_one()
            self._entries[name] = entry
            self._size += entry.size

    def _drop_one(self) -> None:
        while True:
            name = next(iter(self._entries))
            oldest = self._entries.pop(name)
            if not oldest.used:
                self._size -= oldest.size
                return
            oldest.used = False
            self._entries[name] = oldest
