"""Prints the stored JSON of a large listing, without importing what computes it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from skillhall._internal.catalog.listing_cache import ListingCache
from skillhall._internal.settings import Settings

if TYPE_CHECKING:
    from skillhall._internal.cli.fast_list import ListRequest
    from skillhall._internal.cli.search_options import SearchOptions


def open_listing_cache(search: SearchOptions) -> ListingCache | None:
    """Return the stored listing of a search; `None` without a cache or with many roots."""
    try:
        settings = Settings.read()
    except FileNotFoundError:  # the working directory is gone
        return None
    if len(search.roots) != 1 or search.no_index or not settings.use_head_cache:
        return None
    # As `Root.resolve`; importing `pathlib` or the module of `Root` takes too long.
    path = os.path.join(settings.working_directory, os.path.expanduser(search.roots[0]))  # noqa: PTH111, PTH118
    follow_links = settings.follow_links or search.follow_links
    options = f"{search.profile}, depth {search.depth}, links {follow_links}"
    return ListingCache(settings.cache_directory, os.path.abspath(path), options)  # noqa: PTH100


def print_stored_listing(request: ListRequest) -> bool:
    """Print the stored listing if it is current; return whether it was printed."""
    # The numbers of tokens and files depend on more files than a scan looks at.
    cache = None if request.long else open_listing_cache(request.search)
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
