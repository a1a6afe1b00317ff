"""A value that is looked up again as often as that is cheap."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

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
