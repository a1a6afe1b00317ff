"""Looks at a server's own skills: at once where it must be so, else beside whoever asks."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.skill_store.store import OwnSkills


class _Look(NamedTuple):
    """A look: when it was, what was known to have changed until then, and what it saw."""

    time: float
    pulse: object
    revision: str


@dataclass(slots=True)
class Looks:
    """The last look, and the one that is under way."""

    own: OwnSkills
    _last: _Look | None = None
    _beside: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def revision(self, now: float, max_age: float) -> str:
        """What is seen now; with a `max_age` in seconds, what was seen last.

        A change that is known of without a look is always seen. A look older than `max_age` is
        still good, and starts the next one.
        """
        last, pulse = self._last, self.own.pulse
        if last is None or not max_age or last.pulse != pulse:
            return self._look(now)
        if now - last.time >= max_age:
            self._look_beside(now)
        return last.revision

    def wait(self) -> None:
        """Until no look is under way."""
        beside = self._beside
        if beside is not None:
            beside.join()

    def _look(self, now: float) -> str:
        pulse = self.own.pulse  # before the look: a change meanwhile is looked at again
        self._last = _Look(now, pulse, self.own.revision())
        return self._last.revision

    def _look_beside(self, now: float) -> None:
        with self._lock:
            if self._beside is None or not self._beside.is_alive():
                self._beside = threading.Thread(target=self._try_to_look, args=(now,), daemon=True)
                self._beside.start()

    def _try_to_look(self, now: float) -> None:
        try:
            self._look(now)
        except (OSError, SkillhallError):
            self._last = None  # whoever asks next looks, and is told
