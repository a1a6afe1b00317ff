"""Search options of a command, and its settings. For `list`, it imports no click."""

from __future__ import annotations

from typing import NamedTuple

from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.settings import Settings


class SearchOptions(NamedTuple):
    """Roots and options of a command's search for skills."""

    roots: tuple[str, ...] = ()
    profile: str = "lenient"
    depth: int | None = None  # `None`: the profile's depth
    follow_links: bool = False
    no_index: bool = False


def read_settings(*, no_index: bool = False, follow_links: bool = False) -> Settings:
    """Read the settings. Raises: CommandFailed if the working directory is gone."""
    try:
        settings = Settings.read()
    except FileNotFoundError:
        raise CommandFailed(
            "not_found", "the current folder no longer exists", "change to another folder"
        ) from None
    return apply_options(settings, no_index=no_index, follow_links=follow_links)


def apply_options(settings: Settings, *, no_index: bool, follow_links: bool) -> Settings:
    """Return the settings with the options of a command."""
    return settings._replace(
        use_head_cache=settings.use_head_cache and not no_index,
        follow_links=settings.follow_links or follow_links,
    )
