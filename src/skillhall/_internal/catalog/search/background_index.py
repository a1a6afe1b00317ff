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
MAX_BODIES = 64 * 1024 * 1024  # of all; their index takes about two thirds of that in memory
THREAD = "skillhall-search"


class State(NamedTuple):
    """The skills of one moment, and what that moment is known by."""

    revision: str
    catalog: Catalog


class _Indexed(NamedTuple):
    revision: str
    found_by: SearchIndex


class _Outdated(Exception):
    """There is a newer state to read."""


class Searching:
    """The indexes of the last state; safe to use from several threads."""

    def __init__(
        self, read: Callable[[Skill], str] = read_raw_body, at_most: int = MAX_BODIES
    ) -> None:
        self._read = read
        self._at_most = at_most
        self._gate = threading.Lock()
        self._heads: _Indexed | None = None
        self._whole: _Indexed | None = None
        self._next: State | None = None  # what the thread is to read
        self._thread: threading.Thread | None = None

    def index(self, state: State) -> SearchIndex:
        """The best index of that state which is there; one without bodies is made if need be."""
        with self._gate:
            for made in (self._whole, self._heads):
                if made is not None and made.revision == state.revision:
                    return made.found_by
            self._heads = _Indexed(state.revision, SearchIndex.build(state.catalog))
            return self._heads.found_by

    def prepare(self, state: State) -> None:
        """Have the bodies of that state read."""
        with self._gate:
            self._next = state
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=THREAD, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            while (state := self._taken()) is not None:
                self._build(state)
        finally:
            with self._gate:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _taken(self) -> State | None:
        with self._gate:
            state, self._next = self._next, None
            if state is None:  # from here on another thread may be started
                self._thread = None
            return state

    def _build(self, state: State) -> None:
        left = self._at_most

        def body(skill: Skill) -> str:
            nonlocal left
            if self._next is not None:
                raise _Outdated
            text = self._read(skill)[:MAX_BODY] if left > 0 else ""
            left -= len(text)
            return text

        try:
            index = SearchIndex.build(state.catalog, body)
        except _Outdated:
            return
        with self._gate:
            self._whole = _Indexed(state.revision, index)
            self._heads = None
