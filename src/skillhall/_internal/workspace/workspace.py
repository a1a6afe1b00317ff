"""The workspace: services for the sessions, blocks and templates of one database."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from skillhall._internal.workspace.blocks import Blocks
from skillhall._internal.workspace.compiled_context import Contexts
from skillhall._internal.workspace.sessions import Sessions
from skillhall._internal.workspace.snapshots import Snapshots
from skillhall._internal.workspace.templates import Templates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.records import Event
    from skillhall._internal.storage.sql.events.event_feed import EventFeed
    from skillhall._internal.workspace.importer import SkillImporter
    from skillhall._internal.workspace.unit_of_work import UnitOfWork


EVENT_PAGE_SIZE = 500  # events per read


class Workspace:
    """Services over one store. Call `close` when done."""

    def __init__(
        self,
        unit_of_work: UnitOfWork,
        importer: SkillImporter,
        event_source: EventFeed | None,
        close: Callable[[], None],
    ) -> None:
        self.unit_of_work = unit_of_work
        self.sessions = Sessions(unit_of_work)
        self.blocks = Blocks(unit_of_work)
        self.templates = Templates(unit_of_work)
        self.snapshots = Snapshots(unit_of_work)
        self.contexts = Contexts(unit_of_work)
        self.importer = importer
        self.event_source = event_source
        self._close = close

    def acting_as(self, actor: Actor) -> Workspace:
        """Return the same workspace for changes by an actor, which the audit log records."""
        unit_of_work = self.unit_of_work.acting_as(actor)
        importer = replace(self.importer, unit_of_work=unit_of_work)
        return Workspace(unit_of_work, importer, self.event_source, self._close)

    def events(self, after: int, session: str | None = None) -> Sequence[Event]:
        """Return a page of events after a sequence number, optionally of one session."""
        return self.unit_of_work.store.read(
            lambda read: read.events(after, EVENT_PAGE_SIZE, session)
        )

    def event_range(self) -> tuple[int, int]:
        """Return the first and last stored sequence number; zeros if there are no events."""
        return self.unit_of_work.store.read(lambda read: read.event_range())

    def close(self) -> None:
        """Close the event source and the database."""
        if self.event_source is not None:
            self.event_source.close()
        self._close()


class LazyWorkspace:
    """Workspace that is opened on first use; after a failure, the next use retries."""

    def __init__(self, create: Callable[[], Workspace]) -> None:
        self._create = create
        self._workspace: Workspace | None = None
        self._lock = threading.Lock()
        self._bound_to: tuple[LazyWorkspace, Actor] | None = None

    def acting_as(self, actor: Actor) -> LazyWorkspace:
        """Return the same workspace for changes by an actor."""
        bound = LazyWorkspace(self._create)
        bound._bound_to = self, actor
        return bound

    def open(self) -> Workspace:
        """Return the workspace. Raises: DatabaseUnavailable, DatabaseNewer, ConfigInvalid."""
        if self._bound_to is not None:
            workspace, actor = self._bound_to
            return workspace.open().acting_as(actor)
        with self._lock:
            if self._workspace is None:
                self._workspace = self._create()
            return self._workspace

    def close(self) -> None:
        """Close the workspace if it is open."""
        with self._lock:
            if self._workspace is not None:
                self._workspace.close()
                self._workspace = None
