"""Builds the skill collection of a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.catalog.embedding_inputs import EmbeddingTexts
from skillhall._internal.hints import find_close_names
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.skill_analysis import compute_digests
from skillhall._internal.skill_store.trust.revocation_list import PublishedRevocations
from skillhall._internal.skill_store.trust.server_trust import ServerTrust
from skillhall._internal.storage.inventories import Inventories
from skillhall._internal.storage.server_revocations import Revocations
from skillhall._internal.storage.sql.inventory_rows import SqlInventoryTable
from skillhall._internal.storage.sql.revocation_rows import SqlRevocationTable
from skillhall._internal.wiring.skill_gate import open_server_gate
from skillhall.errors import ConfigInvalid, SkillNotFound

if TYPE_CHECKING:
    from skillhall._internal.embeddings.embedding_job import BackgroundEmbedding
    from skillhall._internal.embeddings.semantic_ranking import SemanticRanking
    from skillhall._internal.prompt_server.service import PromptService
    from skillhall._internal.settings import Settings
    from skillhall._internal.signing.keys import PrivateKey
    from skillhall._internal.skill_store.store import SkillStore
    from skillhall._internal.wiring.database import DatabaseServices

_KEY_VARIABLE = "SKILLHALL_SIGNING_KEY"
_MAX_KEY_SIZE = 64 * 1024  # bytes


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
    collection = Collection(
        store,
        settings,
        prompt_service.skills,
        semantic=semantic,
        versions=None if services is None else services.versions,
        served=open_server_gate(settings),
    )
    if services is not None:
        cache = services.revocations
        collection.read_revoked = lambda: cache.revoked
    if embedding is not None:
        texts = EmbeddingTexts()
        collection.on_change = lambda skills: embedding.schedule(lambda: texts.list_inputs(skills))
    return collection


def compute_stored_digests(
    identity: str, settings: Settings, services: DatabaseServices
) -> tuple[str, ...]:
    """Return the digests of a skill in the store of a server. Raises: SkillNotFound."""
    store = services.skill_store or FolderStore(settings.working_directory)
    skills = {skill.id: skill for skill in store.catalog()}
    if identity not in skills:
        raise SkillNotFound(identity, find_close_names(identity, skills))
    return compute_digests(skills[identity])


def open_server_trust(
    settings: Settings, collection: Collection, services: DatabaseServices
) -> ServerTrust:
    """Return the trust services of a server. Its list is signed if there is a key.

    Raises: ConfigInvalid.
    """
    key = _load_signing_key(settings) if settings.server.signing_key else None
    return ServerTrust(
        collection,
        Revocations(SqlRevocationTable(services.database)),
        PublishedRevocations(services.revocations, key),
        Inventories(SqlInventoryTable(services.database)),
        services.revocations.try_refresh,
    )


def _load_signing_key(settings: Settings) -> PrivateKey:
    path, secret = settings.server.signing_key, settings.signing_passphrase
    try:
        # Only servers with a key need the package for signatures.
        from skillhall._internal.signing.keys import load_private_key  # noqa: PLC0415

        with Path(path).open("rb") as file:
            data = file.read(_MAX_KEY_SIZE)
    except ModuleNotFoundError:
        problem = "the package 'cryptography' is not installed"
        hint = "install it: pip install 'skillhall[signing]'"
        raise ConfigInvalid(_KEY_VARIABLE, problem, hint) from None
    except OSError as error:
        problem = f"the key cannot be read: {(error.strerror or '').lower()}"
        raise ConfigInvalid(_KEY_VARIABLE, problem) from None
    return load_private_key(data, _KEY_VARIABLE, secret.reveal().encode() if secret else None)
