"""Build the collection of skills that a server shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.skill_store.collection import Collection, Origin, Supplied
from skillhall._internal.skill_store.folder_store import LocalSkills

if TYPE_CHECKING:
    from skillhall._internal.prompts.service import PromptCounter
    from skillhall._internal.settings import Settings
    from skillhall._internal.wiring.database import Shared


def open_collection(
    settings: Settings, counter: PromptCounter, shared: Shared | None = None
) -> Collection:
    """The skills that a server shows: its own, and those of repositories that it reads."""

    def repository() -> Supplied:
        stock = counter.skills()
        origins = {one.folder: Origin(one.source, one.commit) for one in stock.contents}
        return Supplied(stock.digest, stock.skills, origins)

    if shared is not None and shared.skills is not None:
        return Collection(shared.skills, settings, repository)
    local = LocalSkills(settings.working_directory, follow_links=settings.follow_links)
    local.sweep()
    return Collection(local, settings, repository)
