"""Search index of a server: heads at once, bodies when they have been read.

A background thread reads the bodies, so that requests never wait for them. If the skills change
while it reads, it starts again with the latest state.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.search.search_index import SearchIndex
from skillhall._internal.catalog.skill_content import read_raw_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillhall._internal.catalog.catalog import CatalogSkill

MAX_BODY = 128 * 1024  # characters; the rest of a body is not searched
MAX_TOTAL_BODIES = (
    64 * 1024 * 1024
)  # characters; the index takes about two thirds of that in memory
_IDLE_FACTOR = 4.0  # seconds without indexing for each second of it
_MAX_PAUSE = 30.0  # seconds
THREAD_NAME = "skillhall-search"


class IndexInput(NamedTuple):
    """Skills and their revision."""

    revision: str
    skills: Iterable[CatalogSkill]


class _Outdated(Exception):
    """A newer state is pending."""


class BackgroundIndex:
    """Search indexes of the latest state; thread-safe."""

    def __init__(
        self,
        body_reader: Callable[[CatalogSkill], str] = read_raw_body,
        max_chars: int = MAX_TOTAL_BODIES,
    ) -> None:
        self._body_reader = body_reader
        self._max_chars = max_chars
        self._lock = threading.Lock()
        # Each with its revision.
        self._head_index: tuple[str, SearchIndex] | None = None
        self._full_index: tuple[str, SearchIndex] | None = None
        self._pending: IndexInput | None = None  # next input of the thread
        self._thread: threading.Thread | None = None
        self._built_at = self._build_time = 0.0  # end and duration of the last build, in seconds

    def get_index(self, state: IndexInput) -> SearchIndex:
        """Return the index of a state: with bodies if ready, else one of heads only."""
        with self._lock:
            for cached in (self._full_index, self._head_index):
                if cached is not None and cached[0] == state.revision:
                    return cached[1]
            self._head_index = state.revision, SearchIndex.build(state.skills)
            return self._head_index[1]

    def schedule(self, state: IndexInput) -> None:
        """Start to index the bodies of a state in the background."""
        with self._lock:
            self._pending = state
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                if self._pending is not None:
                    # Many changes in a row must not keep a core busy.
                    pause = self._built_at + _IDLE_FACTOR * self._build_time - time.monotonic()
                    time.sleep(max(0.0, min(pause, _MAX_PAUSE)))
                with self._lock:
                    state, self._pending = self._pending, None
                    if state is None:
                        # Reset under the lock, so that `schedule` starts another thread.
                        self._thread = None
                        return
                started = time.monotonic()
                self._build(state)
                self._built_at = time.monotonic()
                self._build_time = self._built_at - started
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _build(self, state: IndexInput) -> None:
        remaining = self._max_chars

        def read_body(skill: CatalogSkill) -> str:
            nonlocal remaining
            if self._pending is not None:
                raise _Outdated
            text = self._body_reader(skill)[:MAX_BODY] if remaining > 0 else ""
            remaining -= len(text)
            return text

        try:
            index = SearchIndex.build(state.skills, read_body)
        except _Outdated:
            return
        with self._lock:
            self._full_index = state.revision, index
            self._head_index = None
