"""Build the prompt service from settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillhall._internal.prompts.service import PromptCounter
from skillhall._internal.prompts.source_settings import read_supply

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings
    from skillhall._internal.wiring.database import Shared


def open_counter(
    settings: Settings, *, watch: bool = True, shared: Shared | None = None
) -> PromptCounter:
    """The prompts that a server hands out; `close` it. With a watch, news are looked for meanwhile.

    Raises: ConfigInvalid.
    """
    supply = read_supply(settings)
    if shared is None or shared.uploads is None:
        return PromptCounter(supply, watch=watch)
    announcer = shared.announcer
    # The list of what is followed is a file, which the other servers do not know.
    supply = replace(supply, uploads=shared.uploads, announce=announcer.tell, can_follow=False)
    counter = PromptCounter(supply, watch=watch)
    shared.feed.subscribe(lambda events: announcer.hear(events, counter.expire))
    return counter
