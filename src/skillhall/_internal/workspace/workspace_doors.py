"""The door to a workspace whose database may not be there yet."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.workspace.workspace import Workspace


class Door:
    """Opens the workspace when it is first needed, and tries again if that failed."""

    def __init__(self, make: Callable[[], Workspace]) -> None:
        self._make = make
        self._made: Workspace | None = None
        self._lock = threading.Lock()

    def open(self) -> Workspace:
        """The workspace. Raises: DatabaseUnavailable, DatabaseNewer, ConfigInvalid."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def close(self) -> None:
        """Let go of it, if it was opened."""
        with self._lock:
            if self._made is not None:
                self._made.close()
                self._made = None
