"""Polls the skill store's revision; serves stale data while revalidating."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.skill_store.store import SkillStore


class _PollResult(NamedTuple):
    """Result of a poll, with the quick revision from just before it."""

    time: float
    quick_revision: object
    revision: str


@dataclass(slots=True)
class RevisionPoller:
    """Last poll of a store, and the poll that is in progress."""

    store: SkillStore
    _last: _PollResult | None = None
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def revision(self, now: float, max_age: float) -> str:
        """Return the current revision; with a `max_age` in seconds, the last known one.

        A changed quick revision is always noticed. A result older than `max_age` is returned as it
        is and starts a poll in the background.
        """
        last, quick_revision = self._last, self.store.quick_revision
        if last is None or not max_age or last.quick_revision != quick_revision:
            return self._poll(now)
        if now - last.time >= max_age:
            self._poll_in_background(now)
        return last.revision

    def wait(self) -> None:
        """Wait until no background poll is in progress."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _poll(self, now: float) -> str:
        # Read first: a change during the poll then triggers another poll.
        quick_revision = self.store.quick_revision
        self._last = _PollResult(now, quick_revision, self.store.revision())
        return self._last.revision

    def _poll_in_background(self, now: float) -> None:
        def poll() -> None:
            try:
                self._poll(now)
            except (OSError, SkillhallError):
                self._last = None  # the next request polls and gets the error

        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=poll, daemon=True)
                self._thread.start()
