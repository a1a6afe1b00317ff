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
    from collections.abc import Iterable, Sequence

    from skillhall.catalog.catalog import Catalog, Skill
    from skillhall.library.collection import Collection
    from skillhall.library.offering import FolderOffering
    from skillhall.policy.profiles import Profile
    from skillhall.prompts.counter import PromptCounter
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


def open_counter(settings: Settings, *, watch: bool = True) -> PromptCounter:
    """The prompts that a server hands out; `close` it. With a watch, news are looked for meanwhile.

    Raises: ConfigInvalid.
    """
    # Imported here: no other command needs them.
    from skillhall.prompts.configured import read_supply  # noqa: PLC0415
    from skillhall.prompts.counter import PromptCounter  # noqa: PLC0415

    return PromptCounter(read_supply(settings), watch=watch)


def open_collection(settings: Settings, counter: PromptCounter) -> Collection:
    """The skills that a server shows: of its run directory, and of the repository it serves."""
    # Imported here: no other command needs them.
    from skillhall.library.collection import Collection  # noqa: PLC0415
    from skillhall.library.local_skills import LocalSkills  # noqa: PLC0415

    def repository() -> tuple[str, Iterable[Skill]]:
        snapshot = counter.current() or counter.snapshot()
        return snapshot.digest, snapshot.contents.skills

    local = LocalSkills(settings.working_directory)
    local.sweep()
    return Collection(local, settings, repository)


def open_folders(paths: Sequence[str], profile: Profile, settings: Settings) -> FolderOffering:
    """The skills that the folders in `paths`, or the profile's own, have to offer."""
    # Imported here: no other command needs it.
    from skillhall.library.offering import FolderOffering  # noqa: PLC0415

    index = HeadIndex(settings.cache_directory) if settings.use_index else None
    return FolderOffering(roots_for(paths, profile, settings), profile, index)


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
