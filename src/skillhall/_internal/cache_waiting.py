"""What waits in memory for a person to decide: for a while, and up to a size."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from skillhall.errors import ReviewGone

_T = TypeVar("_T")

MAX_SIZE = 256 * 1024 * 1024  # bytes or characters of everything that waits
MAX_WAITING = 32
PATIENCE = 3600.0  # seconds


class _Held(NamedTuple, Generic[_T]):
    value: _T
    size: int
    since: float


@dataclass(slots=True)
class Waiting(Generic[_T]):
    """Values by ids that nobody can guess; safe to use from several threads."""

    clock: Callable[[], float] = time.monotonic
    _held: OrderedDict[str, _Held[_T]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, value: _T, size: int) -> str:
        """Let a value wait; the answer finds it again."""
        key = secrets.token_urlsafe(12)
        with self._lock:
            self._held[key] = _Held(value, size, self.clock())
            self._forget()
        return key

    def find(self, key: str) -> _T:
        """What waits under that id. Raises: ReviewGone."""
        with self._lock:
            self._forget()
            held = self._held.get(key)
        if held is None:
            raise ReviewGone
        return held.value

    def drop(self, key: str) -> None:
        """Let go of it, if it still waits."""
        with self._lock:
            self._held.pop(key, None)

    def _forget(self) -> None:
        """Let go of what waited too long, and of the oldest while it is too much."""
        oldest = self.clock() - PATIENCE
        for key in [key for key, one in self._held.items() if one.since < oldest]:
            del self._held[key]
        while len(self._held) > 1 and (
            len(self._held) > MAX_WAITING or sum(one.size for one in self._held.values()) > MAX_SIZE
        ):
            self._held.popitem(last=False)
