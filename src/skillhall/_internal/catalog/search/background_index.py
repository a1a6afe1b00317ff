"""Search index whose texts are read in a background thread.

The modules of the search are imported when the index is first needed: a client of `skillhall mcp`
waits for the response to `initialize`, and they would take a seventh of its CPU time.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.skill_content import read_skill_md
from skillhall._internal.skill.bundle import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.search.search_index import SearchIndex, TextReader
    from skillhall._internal.embeddings.semantic_ranking import SemanticRanking

THREAD_NAME = "skillhall-search"
MIN_STORED = 500  # skills; smaller indexes build so fast that storing them is not worthwhile
_FOLDER = "search"  # in the cache folder
_IDLE_SHARE = 1.0  # seconds of sleep for each second of work: requests come first


class IndexInput(NamedTuple):
    """Skills and their revision."""

    revision: str
    skills: Iterable[CatalogSkill]


class BackgroundIndex:
    """Search index of the latest state of a set of skills. Thread-safe."""

    def __init__(
        self,
        path: str | None = None,
        read_text: TextReader = read_skill_md,
        min_stored: int = MIN_STORED,
        semantic: SemanticRanking | None = None,
    ) -> None:
        """Create the index, which is opened on first use.

        An index of fewer than `min_stored` skills is not stored; its texts are read immediately.
        """
        self._path = path
        self._read_text = read_text
        self._min_stored = min_stored
        self._semantic = semantic
        self._index: SearchIndex | None = None
        self._revision: str | None = None  # of the index
        self._pending: IndexInput | None = None  # for the thread
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def get_index(self, state: IndexInput) -> SearchIndex:
        """Return the index of a state; texts that have not been read are not searched."""
        with self._lock:
            index = self._update(state)
            if index.pending_count:
                self._start_thread()
            return index

    def schedule(self, state: IndexInput) -> None:
        """Index a state in the background."""
        with self._lock:
            self._pending = state
            self._start_thread()

    def close(self) -> None:
        """Stop the thread and close the index. Idempotent."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        if thread is not None:
            thread.join()
        if self._index is not None:
            self._index.close()

    def _update(self, state: IndexInput) -> SearchIndex:
        if self._index is None or self._revision != state.revision:
            from skillhall._internal.catalog.search.search_index import (  # noqa: PLC0415 - see above
                SearchIndex,
            )

            skills = [*state.skills]
            is_small = len(skills) < self._min_stored
            if self._index is None:
                path = None if is_small else self._path
                self._index = SearchIndex(path, self._read_text, semantic=self._semantic)
            self._index.update(skills)
            if is_small:
                self._index.read_texts()
            self._revision = state.revision
        return self._index

    def _start_thread(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        started = time.monotonic()

        def pause() -> bool:
            nonlocal started
            time.sleep(_IDLE_SHARE * (time.monotonic() - started))
            started = time.monotonic()
            return self._is_closed or self._pending is not None

        while True:
            with self._lock:
                state, self._pending = self._pending, None
                index = self._index if state is None else self._update(state)
                if self._is_closed or index is None or not index.pending_count:
                    # Reset under the lock, so that the next change starts another thread.
                    self._thread = None
                    return
            index.read_texts(pause)


def build_index_path(cache_directory: str, *identity: str) -> str:
    """Return the path of a search index; `identity` identifies its skills."""
    digest = sha256_hex("\n".join(identity).encode("utf-8", "surrogatepass"))
    return os.path.join(cache_directory, _FOLDER, f"{digest[:16]}.db")
