"""Builds the skill collection of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore

if TYPE_CHECKING:
    from skillhall._internal.prompt_server.service import PromptService
    from skillhall._internal.settings import Settings
    from skillhall._internal.wiring.database import DatabaseServices


def open_collection(
    settings: Settings, prompt_service: PromptService, services: DatabaseServices | None = None
) -> Collection:
    """Open the collection: the skill store and the skills of the served repositories."""
    if services is not None and services.skill_store is not None:
        return Collection(services.skill_store, settings, prompt_service.skills)
    store = FolderStore(settings.working_directory, follow_links=settings.follow_links)
    store.sweep()  # leftovers of killed processes
    return Collection(store, settings, prompt_service.skills)
