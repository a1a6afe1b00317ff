"""Settings in, ready objects out: the only place that knows every concrete class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall.catalog.index import HeadIndex
from skillhall.catalog.load import load_roots
from skillhall.errors import UnknownProfile
from skillhall.policy.profiles import LENIENT, PROFILES
from skillhall.settings import Settings
from skillhall.sources.roots import Root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall.catalog.catalog import Catalog
    from skillhall.policy.profiles import Profile
    from skillhall.sources.directory import Progress


def load_catalog(
    paths: Sequence[str] = (),
    profile: Profile | str = LENIENT,
    *,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Catalog:
    """The catalog of the folders in `paths`, or of the profile's own folders if none are given.

    Raises: UnknownProfile.
    """
    settings = settings or Settings.read()
    chosen = profile_named(profile) if isinstance(profile, str) else profile
    index = HeadIndex(settings.cache_directory) if settings.use_index else None
    return load_roots(roots_for(paths, chosen, settings), chosen, index, progress)


def index_directory(settings: Settings) -> str:
    """The folder of the warm index; always safe to remove."""
    return HeadIndex(settings.cache_directory).directory


def roots_for(paths: Sequence[str], profile: Profile, settings: Settings) -> list[Root]:
    """The folders to scan, in order of precedence."""
    base = settings.working_directory
    if paths:
        return [Root.of(path, base) for path in paths]
    return [Root.of(path, base, source, expected=False) for path, source in profile.roots]


def profile_named(name: str) -> Profile:
    """The profile of that name. Raises: UnknownProfile."""
    found = PROFILES.get(name)
    if found is None:
        raise UnknownProfile(name, tuple(PROFILES))
    return found
