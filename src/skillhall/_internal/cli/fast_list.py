"""Fast path of `skillhall list`: parses arguments and prints a stored listing.

Importing click, or the modules that compute a listing, takes longer than listing the skills.
Anything unusual (help, a typo, an unknown option) is left to click. A test checks that both parsers
agree.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.listing_cache import ListingCache
from skillhall._internal.cli.search_options import SearchOptions
from skillhall._internal.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

_FLAGS = {"--json": "json", "--long": "long", "-l": "long", "--no-index": "no_index"}
_FORMATS = ("json", "text")


class ListRequest(NamedTuple):
    """The options of `skillhall list`."""

    search: SearchOptions
    as_json: bool = False
    long: bool = False


def parse_list_arguments(argv: Sequence[str]) -> ListRequest | None:
    """Return the request if the arguments after `list` are plain, else `None`."""
    roots: list[str] = []
    flags: set[str] = set()
    profile, output_format = SearchOptions().profile, "text"
    arguments = iter(argv)
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if argument in _FLAGS:
            flags.add(_FLAGS[argument])
        elif option == "--profile":
            profile = value if equals else next(arguments, "")
        elif option == "--format":
            output_format = value if equals else next(arguments, "")
        elif argument == "--":
            roots += arguments
        elif argument.startswith("-"):
            return None
        else:
            roots.append(argument)
        if output_format not in _FORMATS or not _is_profile(profile):
            return None
    search = SearchOptions(tuple(roots), profile, no_index="no_index" in flags)
    return ListRequest(search, "json" in flags or output_format == "json", "long" in flags)


def _is_profile(name: str) -> bool:
    if name == SearchOptions().profile:
        return True
    from skillhall._internal.policy.profiles import PROFILES  # slow to import

    return name in PROFILES


def open_listing_cache(search: SearchOptions, settings: Settings) -> ListingCache | None:
    """Return the cache for the listing of a search.

    Returns `None` if caches are disabled, or if the search does not have exactly one root.
    """
    if len(search.roots) != 1 or search.no_index or not settings.use_head_cache:
        return None
    if settings.has_revocations:  # a listing marks revoked skills, by all of their files
        return None
    # As `Root.resolve`; importing `pathlib` or the module of `Root` takes too long.
    path = os.path.join(settings.working_directory, os.path.expanduser(search.roots[0]))  # noqa: PTH111, PTH118
    follow_links = settings.follow_links or search.follow_links
    options = f"{search.profile}, depth {search.depth}, links {follow_links}"
    return ListingCache(settings.cache_directory, os.path.abspath(path), options)  # noqa: PTH100


def print_stored_listing(request: ListRequest) -> bool:
    """Print the stored listing if it is current; return whether it was printed."""
    # Token and file counts depend on more files than a scan looks at.
    if request.long or len(request.search.roots) != 1:
        return False
    try:
        cache = open_listing_cache(request.search, Settings.read())
    except FileNotFoundError:  # the working directory is gone
        return False
    stored = None if cache is None else cache.find()
    if stored is None:
        return False
    for chunk in stored.chunks():
        rest = memoryview(chunk)
        while rest:
            rest = rest[sys.stdout.buffer.write(rest) :]
    for message in stored.messages:
        from skillhall._internal.cli.terminal import print_message

        print_message(message)
    return True
