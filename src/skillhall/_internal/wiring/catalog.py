"""Build catalogs and folder providers from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.head_cache import HeadCache
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.policy.profiles import LENIENT, PROFILES
from skillhall._internal.settings import Settings
from skillhall._internal.sources.folder.root import Root, to_paths
from skillhall.errors import UnknownProfile

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.sources.folder.root import Paths
    from skillhall._internal.sources.folder.walker import ScanProgress


def load_catalog(  # noqa: PLR0913 - each is an option of its own
    paths: Paths | None = None,
    profile: Profile | str = LENIENT,
    *,
    depth: int | None = None,
    bodies: bool = False,
    settings: Settings | None = None,
    progress: ScanProgress | None = None,
) -> Catalog:
    """The catalog of one folder or several, or of the profile's own folders if none are given.

    `depth` is how many levels below each folder are searched; the profile's own if not given. With
    `bodies`, each SKILL.md is read to its end, and skills whose body is not text are rejected.
    Raises: UnknownProfile, ValueError.
    """
    settings = settings or Settings.read()
    chosen = find_profile(profile) if isinstance(profile, str) else profile
    chosen = chosen.with_depth(depth)
    index = HeadCache(settings.cache_directory) if settings.use_head_cache else None
    roots = resolve_roots(paths, chosen, settings)
    return load_roots(roots, chosen, index, progress, with_bodies=bodies)


def get_head_cache_directory(settings: Settings) -> str:
    """The folder of the warm index; always safe to remove."""
    return HeadCache(settings.cache_directory).directory


def resolve_roots(paths: Paths | None, profile: Profile, settings: Settings) -> list[Root]:
    """The folders to scan, in order of precedence."""
    base, follow = settings.working_directory, settings.follow_links
    if given := to_paths(() if paths is None else paths):
        return [Root.resolve(path, base, follow_links=follow) for path in given]
    return [
        Root.resolve(path, base, source, is_required=False, follow_links=follow)
        for path, source in profile.roots
    ]


def find_profile(name: str) -> Profile:
    """The profile of that name. Raises: UnknownProfile."""
    found = PROFILES.get(name)
    if found is None:
        raise UnknownProfile(name, tuple(PROFILES))
    return found
