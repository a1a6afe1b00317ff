"""Builds the workspace from settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.installer.locked_sources import normalize_source
from skillhall._internal.policy.access.actor import SYSTEM_ACTOR
from skillhall._internal.sources.opener import open_source
from skillhall._internal.sources.token_scope import open_client_source
from skillhall._internal.storage.audit.audit_sealer import seal_on_close
from skillhall._internal.storage.runtime_settings import read_budgets
from skillhall._internal.storage.sql.events.event_feed import EventFeed
from skillhall._internal.storage.sql.events.event_signal import open_event_signal
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall._internal.wiring.database import DatabaseServices, new_id, open_database, utc_now
from skillhall._internal.wiring.skill_gate import open_server_gate
from skillhall._internal.workspace.importer import OpenedSkills, SkillImporter
from skillhall._internal.workspace.skill_blocks import LOCAL_SOURCE, URL_SOURCE, Provenance
from skillhall._internal.workspace.unit_of_work import UnitOfWork
from skillhall._internal.workspace.workspace import LazyWorkspace, Workspace
from skillhall.errors import without_credentials

if TYPE_CHECKING:
    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.settings import Settings


def open_workspace(
    settings: Settings,
    actor: Actor,
    *,
    for_server: bool = False,
    services: DatabaseServices | None = None,
) -> Workspace:
    """Open the workspace on the configured database, or on that of `services`, for an actor.

    Call `close` when done; it also closes `services`. With `for_server`, the workspace imports
    only from remote sources and receives the events of other servers.
    Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
    """
    database = open_database(settings) if services is None else services.database
    fixed = settings.server.fixed
    budgets = read_budgets(database, fixed) if services is None else services.get_default_budgets
    work = UnitOfWork(SqlWorkspaceStore(database, actor), utc_now, new_id, budgets)
    source = partial(_open_source, settings, remote_only=for_server)
    scan = settings.server.folder_scan
    gate = open_server_gate(settings, services)
    importer = SkillImporter(work, gate, source, scan, settings.working_directory)
    if services is not None:
        return Workspace(work, importer, services.event_feed, services.close)
    feed = EventFeed(work.store, open_event_signal(database)) if for_server else None
    return Workspace(work, importer, feed, seal_on_close(database))


def open_lazy_workspace(
    settings: Settings, services: DatabaseServices | None = None
) -> LazyWorkspace:
    """Return the workspace of a server, opened on first use. Call `close` when done.

    Requests bind their own actors to it.
    """
    open_ = partial(open_workspace, settings, SYSTEM_ACTOR, for_server=True, services=services)
    return LazyWorkspace(open_)


def _open_source(
    settings: Settings,
    text: str,
    allow_tokens: bool,  # noqa: FBT001 - as `OpenSource`
    *,
    remote_only: bool,
) -> OpenedSkills:
    """Open a source. Raises: same as `open_source`."""
    if remote_only:
        opened = open_client_source(text, settings, allow_tokens=allow_tokens)
    else:
        opened = open_source(text, settings)
    kind = URL_SOURCE if opened.reference.is_remote else LOCAL_SOURCE
    origin = Provenance(kind, without_credentials(text))
    return OpenedSkills(opened.bundles, origin, normalize_source(opened.reference, settings))
