"""Builds the skill collection of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.embedding_inputs import EmbeddingTexts
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.storage.audit.file_audit import FileAudit

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
        if services is not None:
            name = f"skills-{sha256_hex(store.location.encode())[:16]}"
            store.file_audit = FileAudit(services.database, settings.data_directory, name)
            store.is_in_database = True  # its changes wait for the audit log
        store.sweep()  # leftovers of killed processes
    collection = Collection(store, settings, prompt_service.skills, semantic=semantic)
    if embedding is not None:
        texts = EmbeddingTexts()
        collection.on_change = lambda skills: embedding.schedule(lambda: texts.list_inputs(skills))
    return collection
