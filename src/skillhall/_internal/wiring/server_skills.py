"""Build the collection of skills that a server shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.skill_store.collection import (
    Collection,
    RepositoryOrigin,
    RepositorySkillSet,
)
from skillhall._internal.skill_store.folder_store import FolderStore

if TYPE_CHECKING:
    from skillhall._internal.prompts.service import PromptService
    from skillhall._internal.settings import Settings
    from skillhall._internal.wiring.database import DatabaseServices


def open_collection(
    settings: Settings, prompt_service: PromptService, services: DatabaseServices | None = None
) -> Collection:
    """The skills that a server shows: its own, and those of repositories that it reads."""

    def repository() -> RepositorySkillSet:
        stock = prompt_service.skills()
        origins = {one.folder: RepositoryOrigin(one.source, one.commit) for one in stock.contents}
        return RepositorySkillSet(stock.digest, stock.skills, origins)

    if services is not None and services.skill_store is not None:
        return Collection(services.skill_store, settings, repository)
    local = FolderStore(settings.working_directory, follow_links=settings.follow_links)
    local.sweep()
    return Collection(local, settings, repository)
