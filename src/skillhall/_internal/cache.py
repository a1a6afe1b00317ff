"""Caches: by cost, by size, and by age."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from skillhall.errors import ReviewGone

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SHARE = 50.0  # looking may take one part in so many of the time that passes


class Lately(Generic[T]):
    """Keeps what a look gave, for some times as long as the look took; safe for several threads.

    What is looked up in a hundredth of a millisecond is practically always fresh; what takes long
    is looked at rarely, and never by two at once.
    """

    def __init__(
        self,
        look: Callable[[], T],
        share: float = SHARE,
        least: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._share = share
        self._least = least  # seconds for which it is kept in any case
        self._clock = clock
        self._kept: tuple[T, float] | None = None  # and until when
        self._lock = threading.Lock()

    @property
    def ready(self) -> T | None:
        """What is kept, if it needs no look; never waits."""
        kept = self._kept
        return kept[0] if kept is not None and self._clock() < kept[1] else None

    def value(self) -> T:
        """What is kept, else what a look gives. Raises: what the look raises."""
        ready = self.ready
        if ready is not None:
            return ready
        with self._lock:
            ready = self.ready  # somebody else may have looked meanwhile
            return self.renewed() if ready is None else ready

    def renewed(self) -> T:
        """What a look gives now. Raises: what the look raises."""
        begun = self._clock()
        found = self._look()
        ended = self._clock()
        self._kept = found, ended + max(self._least, self._share * (ended - begun))
        return found


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
