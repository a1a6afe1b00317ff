"""Build the prompt service from settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillhall._internal.prompts.service import PromptService
from skillhall._internal.prompts.source_settings import read_prompt_sources

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings
    from skillhall._internal.wiring.database import DatabaseServices


def open_prompt_service(
    settings: Settings, *, poll: bool = True, services: DatabaseServices | None = None
) -> PromptService:
    """The prompts that a server hands out; `close` it. With a watch, news are looked for meanwhile.

    Raises: ConfigInvalid.
    """
    supply = read_prompt_sources(settings)
    if services is None or services.uploads is None:
        return PromptService(supply, poll=poll)
    announcer = services.invalidator
    # The list of what is followed is a file, which the other servers do not know.
    supply = replace(
        supply, uploads=services.uploads, publish_change=announcer.publish, can_follow=False
    )
    counter = PromptService(supply, poll=poll)
    services.event_feed.subscribe(lambda events: announcer.handle_events(events, counter.expire))
    return counter
