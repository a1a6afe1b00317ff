"""Builds embedding models, stores and rankings from settings."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.embeddings import fastembed_model
from skillhall._internal.embeddings.embedding_job import BackgroundEmbedding
from skillhall._internal.embeddings.embeddings_api import URL_VARIABLE, EmbeddingsApi
from skillhall._internal.embeddings.fastembed_model import FastEmbedModel
from skillhall._internal.embeddings.semantic_ranking import (
    DisabledRanking,
    ModelRanking,
    SemanticRanking,
)
from skillhall._internal.embeddings.sqlite_vectors import SqliteVectors
from skillhall._internal.net.addresses import build_address_policy
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from skillhall._internal.embeddings.embedding_model import EmbeddingModel
    from skillhall._internal.embeddings.vector_store import VectorStore
    from skillhall._internal.settings import Settings
    from skillhall._internal.storage.sql.engine import Database

_FOLDER = "embeddings"  # in the cache folder
_MAX_TIMEOUT = 60.0  # seconds


class EmbeddingServices(NamedTuple):
    """Configured model, the store of its vectors, and the ranking that uses both."""

    model: EmbeddingModel
    store: VectorStore
    ranking: SemanticRanking
    price: float | None  # of a million tokens

    def open_background(self) -> BackgroundEmbedding:
        """Return the background job that computes vectors; call `start` to start it."""
        return BackgroundEmbedding(self.model, self.store)


def open_semantic_ranking(settings: Settings) -> SemanticRanking:
    """Open the ranking by meaning for a command; disabled if no model is configured.

    A server uses the ranking of `open_embeddings` instead. Raises: ConfigInvalid.
    """
    embeddings = open_embeddings(settings)
    return DisabledRanking() if embeddings is None else embeddings.ranking


def open_embeddings(
    settings: Settings, database: Database | None = None
) -> EmbeddingServices | None:
    """Open the embedding services; `None` if no model is configured.

    The vectors are stored in `database` if it is PostgreSQL, so that all its servers share them,
    else in the cache folder.
    Raises: ConfigInvalid.
    """
    configured = settings.embeddings
    model = _open_model(settings)
    if model is None:
        return None
    price = None
    if configured.price:
        price = _parse_number("SKILLHALL_EMBEDDINGS_PRICE", configured.price, math.inf)
    timeout = _parse_number("SKILLHALL_EMBEDDINGS_TIMEOUT", configured.timeout, _MAX_TIMEOUT)
    store = open_vector_store(settings)
    if database is not None and database.is_postgres:
        # SQLAlchemy belongs to an optional extra.
        from skillhall._internal.embeddings.postgres_vectors import (  # noqa: PLC0415
            PostgresVectors,
        )

        store = PostgresVectors(database)
    return EmbeddingServices(model, store, ModelRanking(model, store, timeout), price)


def open_vector_store(settings: Settings) -> VectorStore:
    """Return the vector store in the cache folder; it is created on first use."""
    return SqliteVectors(os.path.join(settings.cache_directory, _FOLDER))  # noqa: PTH118


def _open_model(settings: Settings) -> EmbeddingModel | None:
    configured = settings.embeddings
    if not configured.model:
        if configured.url:
            raise ConfigInvalid(
                "SKILLHALL_EMBEDDINGS_MODEL",
                f"it is not set, but {URL_VARIABLE} is",
                "set it to the name of a model on that server",
            )
        return None
    if configured.model.startswith(fastembed_model.PREFIX):
        name = configured.model.removeprefix(fastembed_model.PREFIX)
        folder = os.path.join(settings.cache_directory, _FOLDER, "fastembed")  # noqa: PTH118
        return FastEmbedModel(name, folder)
    if not configured.url:
        raise ConfigInvalid(
            URL_VARIABLE,
            "it is not set, but SKILLHALL_EMBEDDINGS_MODEL is",
            "set it to the URL of a server with OpenAI's embeddings API, "
            "such as http://127.0.0.1:11434/v1",
        )
    policy = build_address_policy(settings.allowed_networks, settings.proxies)
    return EmbeddingsApi.from_url(configured.url, configured.model, policy, configured.key)


def _parse_number(variable: str, text: str, limit: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if 0 < number <= limit and number != math.inf:
        return number
    hint = "use a positive number" + ("" if limit == math.inf else f" up to {limit:g}")
    raise ConfigInvalid(variable, f"{text!r} is not a valid number", hint)
