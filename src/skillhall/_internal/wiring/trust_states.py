"""Builds the cache of trust states. It imports little, because listings need it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillhall._internal.catalog.trust.state_cache import StateCache, TrustCacheFile

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings

TRUST_FILE_NAME = "trust.json"


def open_cache_file(settings: Settings, kind: str) -> TrustCacheFile:
    """Return a cache file of the working directory; `kind` says what it contains."""
    directory = settings.cache_directory if settings.use_head_cache else ""
    return TrustCacheFile(directory, kind, os.path.realpath(settings.working_directory))


def open_state_cache(settings: Settings) -> StateCache:
    """Return the cache of the states of the skills in the working directory."""
    file = open_cache_file(settings, f"states, trusted: {settings.trust_project}")
    return StateCache(file, f"{settings.data_directory}{os.sep}{TRUST_FILE_NAME}")
