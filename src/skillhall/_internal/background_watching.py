"""The watch: a thread that looks when it is time to, so that no caller has to wait for it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_PAUSE = 86400.0  # seconds; the system cannot wait for centuries


class Watch:
    """Calls `look` at the start, after `pause()` seconds, and whenever it is woken.

    A pause of `None` is for ever. `look` says how it went elsewhere; it must not raise.
    """

    def __init__(
        self, look: Callable[[], None], pause: Callable[[], float | None], name: str
    ) -> None:
        self._look = look
        self._pause = pause
        self._woken = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look now."""
        self._woken.set()

    def close(self, at_most: float = 5.0) -> None:
        """Stop; a look that is under way may end on its own after that many seconds."""
        self._is_over = True
        self._woken.set()
        self._thread.join(at_most)

    def _run(self) -> None:
        while not self._is_over:
            self._look()
            pause = self._pause()
            self._woken.wait(None if pause is None else min(pause, _LONGEST_PAUSE))
            self._woken.clear()
