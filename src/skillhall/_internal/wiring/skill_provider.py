"""Build the provider that serves the skills of folders to models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.head_cache import HeadIndex
from skillhall._internal.catalog.skill_view import FolderOffering
from skillhall._internal.wiring.catalog import roots_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.settings import Settings


def open_folders(paths: Sequence[str], profile: Profile, settings: Settings) -> FolderOffering:
    """The skills that the folders in `paths`, or the profile's own, have to offer."""
    index = HeadIndex(settings.cache_directory) if settings.use_index else None
    return FolderOffering(roots_for(paths, profile, settings), profile, index)
