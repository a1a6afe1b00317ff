"""Builds catalogs from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.head_cache import HeadCache
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.policy.profiles import LENIENT, PROFILES, Profile
from skillhall._internal.settings import Settings
from skillhall._internal.sources.folder.root import Paths, Root, to_paths
from skillhall.errors import UnknownProfile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.sources.folder.walker import Scan, ScanProgress


def load_catalog(  # noqa: PLR0913 - each is an option of its own
    paths: Paths | None = None,
    profile: Profile | str = LENIENT,
    *,
    depth: int | None = None,
    bodies: bool = False,
    settings: Settings | None = None,
    progress: ScanProgress | None = None,
    on_scan: Callable[[Scan, int], None] | None = None,
    linked_folders: Sequence[str] = (),
) -> Catalog:
    """Load the catalog of one or more folders, by default of the profile's folders.

    `depth` is the number of levels to search below each folder, by default the profile's. With
    `bodies`, each SKILL.md is read completely, and skills whose body is not text are rejected.
    `on_scan` is called with the scan of each root and the time at which it started.
    Raises: UnknownProfile, ValueError.
    """
    settings = settings or Settings.read()
    chosen = find_profile(profile) if isinstance(profile, str) else profile
    chosen = chosen.with_depth(depth)
    head_cache = HeadCache(settings.cache_directory) if settings.use_head_cache else None
    roots = resolve_roots(paths, chosen, settings)
    return load_roots(
        roots,
        chosen,
        head_cache,
        progress,
        with_bodies=bodies,
        linked_folders=linked_folders,
        on_scan=on_scan,
    )


def get_head_cache_directory(settings: Settings) -> str:
    """Return the folder of the head cache, which is always safe to delete."""
    return HeadCache(settings.cache_directory).directory


def resolve_roots(paths: Paths | None, profile: Profile, settings: Settings) -> list[Root]:
    """Return the roots to scan, in order of precedence."""
    base, follow = settings.working_directory, settings.follow_links
    if explicit := to_paths(() if paths is None else paths):
        return [Root.resolve(path, base, follow_links=follow) for path in explicit]
    return [
        Root.resolve(path, base, source, is_required=False, follow_links=follow)
        for path, source in profile.roots
    ]


def find_profile(name: str) -> Profile:
    """Return the profile with this name. Raises: UnknownProfile."""
    if name not in PROFILES:
        raise UnknownProfile(name, tuple(PROFILES))
    return PROFILES[name]
