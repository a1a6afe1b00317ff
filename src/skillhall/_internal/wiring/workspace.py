"""Build the workspace from settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.sources.opener import open_client_source, open_source
from skillhall._internal.sources.ref import GitHubRef, GitRef, UrlRef
from skillhall._internal.storage.sql.event_feed import EventFeed
from skillhall._internal.storage.sql.event_signal import open_watch
from skillhall._internal.storage.sql.workspace_writes import SqlStore
from skillhall._internal.wiring.database import new_id, open_database, utc_now
from skillhall._internal.workspace.importer import Imports
from skillhall._internal.workspace.skill_blocks import LOCAL, URL, Provenance
from skillhall._internal.workspace.unit_of_work import Desk
from skillhall._internal.workspace.workspace import Door, Workspace
from skillhall.errors import without_credentials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.wiring.database import Shared


def open_workspace(
    settings: Settings, *, serving: bool = False, shared: Shared | None = None
) -> Workspace:
    """The sessions of the configured database; `close` it.

    A server's sources are remote ones only, and it hears of what others change. What it shares
    with others brings the database along.
    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    database = open_database(settings) if shared is None else shared.database
    desk = Desk(SqlStore(database), utc_now, new_id)
    source = partial(_open_source, settings, remote=serving)
    is_scanned = settings.server.folder_scan
    imports = Imports(desk, source, is_scanned, settings.working_directory)
    if shared is not None:
        return Workspace.of(desk, imports, shared.feed, shared.close)
    feed = EventFeed(desk.store, open_watch(database)) if serving else None
    return Workspace.of(desk, imports, feed, database.close)


def workspace_door(settings: Settings, shared: Shared | None = None) -> Door:
    """A server's way to its sessions: opened when they are asked for; `close` it."""
    return Door(partial(open_workspace, settings, serving=True, shared=shared))


def _open_source(
    settings: Settings, text: str, *, remote: bool
) -> tuple[Sequence[Bundle], Provenance]:
    """The bundles of a named source, and where that is. Raises: what opening it raises."""
    opened = open_client_source(text, settings) if remote else open_source(text, settings)
    is_remote = isinstance(opened.reference, GitHubRef | GitRef | UrlRef)
    origin = Provenance(URL if is_remote else LOCAL, without_credentials(text))
    return opened.bundles, origin
