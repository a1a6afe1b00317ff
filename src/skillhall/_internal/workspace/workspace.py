"""The workspace: the verbs on sessions, blocks, templates and snapshots, ready to be called."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from skillhall._internal.workspace.blocks import Blocks
from skillhall._internal.workspace.context import Contexts
from skillhall._internal.workspace.sessions import Sessions
from skillhall._internal.workspace.snapshots import Snapshots
from skillhall._internal.workspace.templates import Templates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.storage.records import Event
    from skillhall._internal.workspace.importer import Imports
    from skillhall._internal.workspace.unit_of_work import Desk


PAGE = 500  # events that are read at once


class Feed(Protocol):
    """Tells of events as they come."""

    def subscribe(self, listener: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        """Hand every event from now on to `listener`, until the answer is called."""

    def close(self) -> None:
        """Tell no more."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Each noun with its verbs; `close` it."""

    desk: Desk
    sessions: Sessions
    blocks: Blocks
    templates: Templates
    snapshots: Snapshots
    contexts: Contexts
    imports: Imports
    feed: Feed | None
    _close: Callable[[], None]

    @classmethod
    def of(
        cls, desk: Desk, imports: Imports, feed: Feed | None, close: Callable[[], None]
    ) -> Workspace:
        """The workspace at a desk."""
        return cls(
            desk,
            Sessions(desk),
            Blocks(desk),
            Templates(desk),
            Snapshots(desk),
            Contexts(desk),
            imports,
            feed,
            close,
        )

    def events(self, after: int, session: str | None = None) -> Sequence[Event]:
        """A page of the events that follow a number."""
        return self.desk.store.read(lambda read: read.events(after, PAGE, session))

    def event_range(self) -> tuple[int, int]:
        """The numbers of the first and the last event that are kept."""
        return self.desk.store.read(lambda read: read.event_range())

    def close(self) -> None:
        """Let go of the feed and the database."""
        if self.feed is not None:
            self.feed.close()
        self._close()


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
