"""Opens search indexes of folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.search.background_index import MIN_STORED, build_index_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.catalog.search.search_index import SearchIndex
    from skillhall._internal.embeddings.semantic_ranking import SemanticRanking
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.folder.root import Root


def index_catalog(
    catalog: Catalog,
    settings: Settings | None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> SearchIndex:
    """Return the search index of a catalog, with all its texts.

    The index of a large catalog is stored in the cache folder; without `settings`, it is built in
    memory. `on_progress` is called with the number of texts that are still to be read.
    """
    # `skillhall mcp` imports this module before its first response.
    from skillhall._internal.catalog.search.search_index import SearchIndex  # noqa: PLC0415

    path, semantic = None, None
    if settings is not None:
        semantic = open_configured_ranking(settings)
        if len(catalog) >= MIN_STORED:
            path = get_index_path(catalog.roots, catalog.profile, settings)
    index = SearchIndex(path, semantic=semantic)
    index.update(catalog)
    index.read_texts(on_progress=on_progress)
    return index


def open_configured_ranking(settings: Settings) -> SemanticRanking | None:
    """Open the ranking by meaning; `None` if no embedding model is configured.

    Raises: ConfigInvalid.
    """
    if not settings.embeddings.model and not settings.embeddings.url:
        return None
    # The clients of models take longer to import than a search takes.
    from skillhall._internal.wiring.embedding_services import (  # noqa: PLC0415
        open_semantic_ranking,
    )

    return open_semantic_ranking(settings)


def get_index_path(roots: Iterable[Root], profile: Profile, settings: Settings) -> str | None:
    """Return the path of the search index for `roots`; `None` if caches are disabled."""
    if not settings.use_head_cache:
        return None
    paths = [f"{root.path} {root.follow_links}" for root in roots]
    identity = ("folders", profile.name, str(profile.scan_policy.max_depth), *paths)
    return build_index_path(settings.cache_directory, *identity)
