"""Builds the skill collection of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.embedding_inputs import EmbeddingTexts
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.wiring.skill_gate import open_server_gate

if TYPE_CHECKING:
    from skillhall._internal.embeddings.embedding_job import BackgroundEmbedding
    from skillhall._internal.embeddings.semantic_ranking import SemanticRanking
    from skillhall._internal.prompt_server.service import PromptService
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill_store.store import SkillStore
    from skillhall._internal.wiring.database import DatabaseServices


def open_collection(
    settings: Settings,
    prompt_service: PromptService,
    services: DatabaseServices | None = None,
    embedding: BackgroundEmbedding | None = None,
    semantic: SemanticRanking | None = None,
) -> Collection:
    """Open the collection: the skill store and the skills of the served repositories.

    With `embedding`, the vectors of its skills are computed in the background. With `semantic`,
    search also matches by meaning.
    """
    store: SkillStore | None = None if services is None else services.skill_store
    if store is None:
        store = FolderStore(settings.working_directory, follow_links=settings.follow_links)
        store.sweep()  # leftovers of killed processes
    served = open_server_gate(settings)
    collection = Collection(
        store, settings, prompt_service.skills, semantic=semantic, served=served
    )
    if embedding is not None:
        texts = EmbeddingTexts()
        collection.on_change = lambda skills: embedding.schedule(lambda: texts.list_inputs(skills))
    return collection
