"""In-memory caches, limited by age, by total size or by number of values."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from skillhall.errors import Busy, ReviewGone

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

TTL_FACTOR = 50.0  # TTL / computing time: at most 1/50 of the time is spent computing


class AdaptiveCache(Generic[T]):
    """Cache whose TTL is proportional to the cost of computing the value; thread-safe.

    Cheap values are practically always fresh. Expensive ones are computed rarely, and `get` never
    computes them in two threads at once. `None` is not cached.
    """

    def __init__(
        self,
        compute: Callable[[], T],
        ttl_factor: float = TTL_FACTOR,
        min_ttl: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        *,
        max_ttl: float = math.inf,
    ) -> None:
        self._compute = compute
        self._ttl_factor = ttl_factor
        self._min_ttl = min_ttl  # seconds
        self._max_ttl = max_ttl  # seconds
        self._clock = clock
        self._cached: tuple[T, float] | None = None  # value and expiry
        self._lock = threading.Lock()

    @property
    def fresh_value(self) -> T | None:
        """The cached value, or `None` if it has expired; never blocks."""
        cached = self._cached
        return cached[0] if cached is not None and self._clock() < cached[1] else None

    def get(self) -> T:
        """Return the cached value if it is fresh, else compute it.

        Raises: errors of `compute`.
        """
        value = self.fresh_value
        if value is not None:
            return value
        with self._lock:
            value = self.fresh_value  # another thread may have computed it before we got the lock
            return self.refresh() if value is None else value

    def refresh(self) -> T:
        """Compute the value now. Raises: errors of `compute`."""
        started = self._clock()
        value = self._compute()
        ended = self._clock()
        ttl = max(self._min_ttl, self._ttl_factor * (ended - started))
        self._cached = value, ended + min(ttl, self._max_ttl)
        return value


class _SizedEntry(Generic[T]):
    __slots__ = ("size", "value", "was_used")

    def __init__(self, value: T, size: int) -> None:
        self.value = value
        self.size = size
        self.was_used = False


class SizedCache(Generic[T]):
    """Cache with a total size limit. Cache hits never block.

    Evicts the oldest value that has not been used since it was last considered for eviction
    (second chance). If two threads miss the same key, both create the value.
    """

    def __init__(self, max_size: int, measure: Callable[[T], int]) -> None:
        self._max_size = max_size
        self._measure = measure
        self._entries: dict[str, _SizedEntry[T]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def get_or_create(self, key: str, create: Callable[[], T]) -> T:
        """Return the value of a key; create it if it is not cached.

        A value larger than the limit is returned, but not cached.
        """
        # Looking up a key is atomic, so a cache hit needs no lock.
        entry = self._entries.get(key)
        if entry is not None:
            entry.was_used = True
            return entry.value
        value = create()
        entry = _SizedEntry(value, self._measure(value))
        with self._lock:
            if key not in self._entries and entry.size <= self._max_size:
                while self._size + entry.size > self._max_size:
                    self._evict_one()
                self._entries[key] = entry
                self._size += entry.size
        return value

    def _evict_one(self) -> None:
        while True:
            key = next(iter(self._entries))
            oldest = self._entries.pop(key)
            if not oldest.was_used:
                self._size -= oldest.size
                return
            oldest.was_used = False
            self._entries[key] = oldest


class LruCache(Generic[K, T]):
    """Thread-safe cache of a limited number of values; evicts the least recently used."""

    def __init__(self, max_count: int, on_evict: Callable[[T], None] = lambda _: None) -> None:
        self._max_count = max_count
        self._on_evict = on_evict
        self._values: OrderedDict[K, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> T | None:
        """Return the value of a key and mark it as used; None if it is not cached."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: K, value: T) -> None:
        """Add or replace a value."""
        with self._lock:
            self._values[key] = value
        self.get_or_create(key, lambda: value)  # marks it as used and evicts any excess

    def get_or_create(self, key: K, create: Callable[[], T]) -> T:
        """Return the value of a key; create it if it is not cached.

        `create` must be fast, because all other calls wait for it.
        """
        with self._lock:
            value = self._values.pop(key) if key in self._values else create()
            self._values[key] = value  # at the end: the most recently used one
            excess = range(len(self._values) - self._max_count)
            evicted = [self._values.popitem(last=False)[1] for _ in excess]
        for evicted_value in evicted:
            self._on_evict(evicted_value)
        return value

    def drop(self, key: K, value: T) -> None:
        """Remove a key, if it still has this value."""
        with self._lock:
            if self._values.get(key) is value:
                del self._values[key]

    def values(self) -> list[T]:
        """Return all values, the least recently used first."""
        with self._lock:
            return [*self._values.values()]


MAX_PENDING_SIZE = 256 * 1024 * 1024  # bytes or characters of all values
MAX_PENDING = 32
MAX_PENDING_AGE = 3600.0  # seconds
MIN_PENDING_AGE = 600.0  # seconds; younger values are never dropped to make room


class _PendingValue(NamedTuple, Generic[T]):
    value: T
    size: int
    created: float


@dataclass(slots=True)
class PendingStore(Generic[T]):
    """Pending values by unguessable ids, limited by number, size and age; thread-safe.

    When a limit is reached, values older than `MIN_PENDING_AGE` are dropped; if there are none, the
    new value is rejected.
    """

    clock: Callable[[], float] = time.monotonic
    _values: OrderedDict[str, _PendingValue[T]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, value: T, size: int) -> str:
        """Add a value and return its id. Raises: Busy if a limit is reached."""
        key = secrets.token_urlsafe(12)
        with self._lock:
            self._evict(MAX_PENDING_AGE)
            while self._values and not self._has_room(size):
                if not self._evict(MIN_PENDING_AGE, at_most=1):
                    problem = f"too many pending imports ({len(self._values)})"
                    raise Busy(problem, "complete one of them, or try again later", "overloaded")
            self._values[key] = _PendingValue(value, size, self.clock())
        return key

    def find(self, key: str) -> T:
        """Return the value with this id. Raises: ReviewGone."""
        with self._lock:
            self._evict(MAX_PENDING_AGE)
            pending = self._values.get(key)
        if pending is None:
            raise ReviewGone
        return pending.value

    def drop(self, key: str) -> None:
        """Remove a value, if it is still pending."""
        with self._lock:
            self._values.pop(key, None)

    def _has_room(self, size: int) -> bool:
        used = sum(pending.size for pending in self._values.values())
        return len(self._values) < MAX_PENDING and used + size <= MAX_PENDING_SIZE

    def _evict(self, age: float, at_most: int = MAX_PENDING) -> bool:
        """Drop values older than `age` seconds, oldest first; return whether any were."""
        oldest = self.clock() - age
        expired = [key for key, pending in self._values.items() if pending.created < oldest]
        for key in expired[:at_most]:
            del self._values[key]
        return bool(expired)
