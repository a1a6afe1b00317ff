"""Looks at a server's own skills: at once where it must be so, else beside whoever asks."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.skill_store.store import SkillStore


class _PollResult(NamedTuple):
    """A look: when it was, what was known to have changed until then, and what it saw."""

    time: float
    quick_revision: object
    revision: str


@dataclass(slots=True)
class RevisionPoller:
    """The last look, and the one that is under way."""

    store: SkillStore
    _last: _PollResult | None = None
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def revision(self, now: float, max_age: float) -> str:
        """What is seen now; with a `max_age` in seconds, what was seen last.

        A change that is known of without a look is always seen. A look older than `max_age` is
        still good, and starts the next one.
        """
        last, pulse = self._last, self.store.quick_revision
        if last is None or not max_age or last.quick_revision != pulse:
            return self._poll(now)
        if now - last.time >= max_age:
            self._poll_in_background(now)
        return last.revision

    def wait(self) -> None:
        """Until no look is under way."""
        beside = self._thread
        if beside is not None:
            beside.join()

    def _poll(self, now: float) -> str:
        pulse = self.store.quick_revision  # before the look: a change meanwhile is looked at again
        self._last = _PollResult(now, pulse, self.store.revision())
        return self._last.revision

    def _poll_in_background(self, now: float) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._try_poll, args=(now,), daemon=True)
                self._thread.start()

    def _try_poll(self, now: float) -> None:
        try:
            self._poll(now)
        except (OSError, SkillhallError):
            self._last = None  # whoever asks next looks, and is told
