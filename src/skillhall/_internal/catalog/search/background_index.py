"""Search over what a server shows: by heads at once, by bodies as soon as they were read.

Bodies are read by a thread of their own, so that nobody waits for them. It takes up what is shown
by then; what it was reading for a former state is given up.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.reader import read_raw_body
from skillhall._internal.catalog.search.search_index import SearchIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.catalog.catalog import Catalog, Skill

MAX_BODY = 128 * 1024  # characters of one body that are searched
MAX_TOTAL_BODIES = 64 * 1024 * 1024  # of all; their index takes about two thirds of that in memory
THREAD_NAME = "skillhall-search"


class IndexInput(NamedTuple):
    """The skills of one moment, and what that moment is known by."""

    revision: str
    catalog: Catalog


class _RevisionIndex(NamedTuple):
    revision: str
    search_index: SearchIndex


class _Outdated(Exception):
    """There is a newer state to read."""


class BackgroundIndex:
    """The indexes of the last state; safe to use from several threads."""

    def __init__(
        self, body_reader: Callable[[Skill], str] = read_raw_body, max_chars: int = MAX_TOTAL_BODIES
    ) -> None:
        self._body_reader = body_reader
        self._max_chars = max_chars
        self._lock = threading.Lock()
        self._head_index: _RevisionIndex | None = None
        self._full_index: _RevisionIndex | None = None
        self._pending: IndexInput | None = None  # what the thread is to read
        self._thread: threading.Thread | None = None

    def get_index(self, state: IndexInput) -> SearchIndex:
        """The best index of that state which is there; one without bodies is made if need be."""
        with self._lock:
            for made in (self._full_index, self._head_index):
                if made is not None and made.revision == state.revision:
                    return made.search_index
            self._head_index = _RevisionIndex(state.revision, SearchIndex.build(state.catalog))
            return self._head_index.search_index

    def schedule(self, state: IndexInput) -> None:
        """Have the bodies of that state read."""
        with self._lock:
            self._pending = state
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            while (state := self._take_pending()) is not None:
                self._build(state)
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _take_pending(self) -> IndexInput | None:
        with self._lock:
            state, self._pending = self._pending, None
            if state is None:  # from here on another thread may be started
                self._thread = None
            return state

    def _build(self, state: IndexInput) -> None:
        left = self._max_chars

        def body(skill: Skill) -> str:
            nonlocal left
            if self._pending is not None:
                raise _Outdated
            text = self._body_reader(skill)[:MAX_BODY] if left > 0 else ""
            left -= len(text)
            return text

        try:
            index = SearchIndex.build(state.catalog, body)
        except _Outdated:
            return
        with self._lock:
            self._full_index = _RevisionIndex(state.revision, index)
            self._head_index = None
