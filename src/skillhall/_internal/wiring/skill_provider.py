"""Builds the skill provider for folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.folder_skill_provider import FolderSkillProvider
from skillhall._internal.catalog.head_cache import HeadCache
from skillhall._internal.catalog.search.background_index import BackgroundIndex
from skillhall._internal.wiring.catalog import resolve_roots
from skillhall._internal.wiring.catalog_index import get_index_path, open_configured_ranking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.settings import Settings


def open_folder_provider(
    paths: Sequence[str], profile: Profile, settings: Settings
) -> FolderSkillProvider:
    """Open the provider of the skills in `paths`, by default in the profile's folders."""
    head_cache = HeadCache(settings.cache_directory) if settings.use_head_cache else None
    roots = resolve_roots(paths, profile, settings)
    index = BackgroundIndex(
        get_index_path(roots, profile, settings), semantic=open_configured_ranking(settings)
    )
    return FolderSkillProvider(roots, profile, head_cache, index)
