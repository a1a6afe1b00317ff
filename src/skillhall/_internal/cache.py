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

TTL_FACTOR = 50.0  # looking may take one part in so many of the time that passes


class AdaptiveCache(Generic[T]):
    """Keeps what a look gave, for some times as long as the look took; safe for several threads.

    What is looked up in a hundredth of a millisecond is practically always fresh; what takes long
    is looked at rarely, and never by two at once.
    """

    def __init__(
        self,
        compute: Callable[[], T],
        ttl_factor: float = TTL_FACTOR,
        min_ttl: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._compute = compute
        self._ttl_factor = ttl_factor
        self._min_ttl = min_ttl  # seconds for which it is kept in any case
        self._clock = clock
        self._cached: tuple[T, float] | None = None  # and until when
        self._lock = threading.Lock()

    @property
    def fresh_value(self) -> T | None:
        """What is kept, if it needs no look; never waits."""
        kept = self._cached
        return kept[0] if kept is not None and self._clock() < kept[1] else None

    def get(self) -> T:
        """What is kept, else what a look gives. Raises: what the look raises."""
        ready = self.fresh_value
        if ready is not None:
            return ready
        with self._lock:
            ready = self.fresh_value  # somebody else may have looked meanwhile
            return self.refresh() if ready is None else ready

    def refresh(self) -> T:
        """What a look gives now. Raises: what the look raises."""
        begun = self._clock()
        found = self._compute()
        ended = self._clock()
        self._cached = found, ended + max(self._min_ttl, self._ttl_factor * (ended - begun))
        return found


class _SizedEntry(Generic[T]):
    __slots__ = ("size", "value", "was_used")

    def __init__(self, value: T, size: int) -> None:
        self.value = value
        self.size = size
        self.was_used = False


class SizedCache(Generic[T]):
    """Values by name, up to a number of bytes. Whoever finds a value waits for nobody.

    When room is needed the oldest value goes, unless somebody asked for it since the last time it
    was its turn. Two threads that miss the same value both make it: it is the same.
    """

    def __init__(self, max_size: int, measure: Callable[[T], int]) -> None:
        self._max_size = max_size
        self._measure = measure
        self._entries: dict[str, _SizedEntry[T]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def get_or_create(self, key: str, create: Callable[[], T]) -> T:
        """The value of that name, made if it is not here."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.was_used = True
            return entry.value
        made = create()
        self._add(key, _SizedEntry(made, self._measure(made)))
        return made

    def _add(self, key: str, entry: _SizedEntry[T]) -> None:
        if entry.size > self._max_size:
            return
        with self._lock:
            if key in self._entries:
                return
            while self._size + entry.size > self._max_size:
                self._evict_one()
            self._entries[key] = entry
            self._size += entry.size

    def _evict_one(self) -> None:
        while True:
            name = next(iter(self._entries))
            oldest = self._entries.pop(name)
            if not oldest.was_used:
                self._size -= oldest.size
                return
            oldest.was_used = False
            self._entries[name] = oldest


_T = TypeVar("_T")

MAX_PENDING_SIZE = 256 * 1024 * 1024  # bytes or characters of everything that waits
MAX_PENDING = 32
MAX_PENDING_AGE = 3600.0  # seconds


class _PendingValue(NamedTuple, Generic[_T]):
    value: _T
    size: int
    created: float


@dataclass(slots=True)
class PendingStore(Generic[_T]):
    """Values by ids that nobody can guess; safe to use from several threads."""

    clock: Callable[[], float] = time.monotonic
    _values: OrderedDict[str, _PendingValue[_T]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, value: _T, size: int) -> str:
        """Let a value wait; the answer finds it again."""
        key = secrets.token_urlsafe(12)
        with self._lock:
            self._values[key] = _PendingValue(value, size, self.clock())
            self._evict()
        return key

    def find(self, key: str) -> _T:
        """What waits under that id. Raises: ReviewGone."""
        with self._lock:
            self._evict()
            held = self._values.get(key)
        if held is None:
            raise ReviewGone
        return held.value

    def drop(self, key: str) -> None:
        """Let go of it, if it still waits."""
        with self._lock:
            self._values.pop(key, None)

    def _evict(self) -> None:
        """Let go of what waited too long, and of the oldest while it is too much."""
        oldest = self.clock() - MAX_PENDING_AGE
        for key in [key for key, one in self._values.items() if one.created < oldest]:
            del self._values[key]
        while len(self._values) > 1 and (
            len(self._values) > MAX_PENDING
            or sum(one.size for one in self._values.values()) > MAX_PENDING_SIZE
        ):
            self._values.popitem(last=False)
