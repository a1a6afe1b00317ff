"""Build catalogs and folder providers from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.head_cache import HeadIndex
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.policy.profiles import LENIENT, PROFILES
from skillhall._internal.settings import Settings
from skillhall._internal.sources.folder.root import Root, paths_of
from skillhall.errors import UnknownProfile

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.sources.folder.root import Paths
    from skillhall._internal.sources.folder.walker import Progress


def load_catalog(  # noqa: PLR0913 - each is an option of its own
    paths: Paths | None = None,
    profile: Profile | str = LENIENT,
    *,
    depth: int | None = None,
    bodies: bool = False,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Catalog:
    """The catalog of one folder or several, or of the profile's own folders if none are given.

    `depth` is how many levels below each folder are searched; the profile's own if not given. With
    `bodies`, each SKILL.md is read to its end, and skills whose body is not text are rejected.
    Raises: UnknownProfile, ValueError.
    """
    settings = settings or Settings.read()
    chosen = profile_named(profile) if isinstance(profile, str) else profile
    chosen = chosen.searching(depth)
    index = HeadIndex(settings.cache_directory) if settings.use_index else None
    roots = roots_for(paths, chosen, settings)
    return load_roots(roots, chosen, index, progress, bodies=bodies)


def index_directory(settings: Settings) -> str:
    """The folder of the warm index; always safe to remove."""
    return HeadIndex(settings.cache_directory).directory


def roots_for(paths: Paths | None, profile: Profile, settings: Settings) -> list[Root]:
    """The folders to scan, in order of precedence."""
    base, follow = settings.working_directory, settings.follow_links
    if given := paths_of(() if paths is None else paths):
        return [Root.of(path, base, follow_links=follow) for path in given]
    return [
        Root.of(path, base, source, expected=False, follow_links=follow)
        for path, source in profile.roots
    ]


def profile_named(name: str) -> Profile:
    """The profile of that name. Raises: UnknownProfile."""
    found = PROFILES.get(name)
    if found is None:
        raise UnknownProfile(name, tuple(PROFILES))
    return found
