"""Builds the prompt service from settings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.catalog.trust.server_gate import PromptGate
from skillhall._internal.prompt_server.service import PromptService
from skillhall._internal.prompt_server.source_settings import read_prompt_sources
from skillhall._internal.storage.audit.file_audit import FileAudit
from skillhall._internal.wiring.skill_gate import open_server_gate

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings
    from skillhall._internal.wiring.database import DatabaseServices


def open_prompt_service(
    settings: Settings, *, poll: bool = True, services: DatabaseServices | None = None
) -> PromptService:
    """Open the prompt service of a server. Call `close` when done.

    With `poll`, it refreshes its sources in the background.
    Raises: ConfigInvalid.
    """
    gate = PromptGate(partial(open_server_gate, settings, services))
    sources = replace(read_prompt_sources(settings), gate=gate)
    if services is not None:
        audit = partial(FileAudit, services.database, settings.data_directory)
        sources = replace(sources, open_file_audit=audit)
    if services is None or services.uploads is None:
        return PromptService(sources, poll=poll)
    invalidator = services.invalidator
    # Followed repositories are stored in a local file, which other servers cannot see.
    sources = replace(
        sources, uploads=services.uploads, publish_change=invalidator.publish, can_follow=False
    )
    service = PromptService(sources, poll=poll)
    services.event_feed.subscribe(lambda events: invalidator.handle_events(events, service.expire))
    return service
