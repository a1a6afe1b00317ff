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
    from skillhall._internal.workspace.importer import SkillImporter
    from skillhall._internal.workspace.unit_of_work import UnitOfWork


EVENT_PAGE_SIZE = 500  # events that are read at once


class EventSource(Protocol):
    """Tells of events as they come."""

    def subscribe(self, subscriber: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        """Hand every event from now on to `listener`, until the answer is called."""

    def close(self) -> None:
        """Tell no more."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Each noun with its verbs; `close` it."""

    unit_of_work: UnitOfWork
    sessions: Sessions
    blocks: Blocks
    templates: Templates
    snapshots: Snapshots
    contexts: Contexts
    importer: SkillImporter
    event_source: EventSource | None
    _close: Callable[[], None]

    @classmethod
    def create(
        cls,
        unit_of_work: UnitOfWork,
        importer: SkillImporter,
        event_source: EventSource | None,
        close: Callable[[], None],
    ) -> Workspace:
        """The workspace at a desk."""
        return cls(
            unit_of_work,
            Sessions(unit_of_work),
            Blocks(unit_of_work),
            Templates(unit_of_work),
            Snapshots(unit_of_work),
            Contexts(unit_of_work),
            importer,
            event_source,
            close,
        )

    def events(self, after: int, session: str | None = None) -> Sequence[Event]:
        """A page of the events that follow a number."""
        return self.unit_of_work.store.read(
            lambda read: read.events(after, EVENT_PAGE_SIZE, session)
        )

    def event_range(self) -> tuple[int, int]:
        """The numbers of the first and the last event that are kept."""
        return self.unit_of_work.store.read(lambda read: read.event_range())

    def close(self) -> None:
        """Let go of the feed and the database."""
        if self.event_source is not None:
            self.event_source.close()
        self._close()


class LazyWorkspace:
    """Opens the workspace when it is first needed, and tries again if that failed."""

    def __init__(self, create: Callable[[], Workspace]) -> None:
        self._create = create
        self._workspace: Workspace | None = None
        self._lock = threading.Lock()

    def open(self) -> Workspace:
        """The workspace. Raises: DatabaseUnavailable, DatabaseNewer, ConfigInvalid."""
        with self._lock:
            if self._workspace is None:
                self._workspace = self._create()
            return self._workspace

    def close(self) -> None:
        """Let go of it, if it was opened."""
        with self._lock:
            if self._workspace is not None:
                self._workspace.close()
                self._workspace = None
