"""Parses the arguments of `skillhall list` without click.

Importing click takes longer than listing the skills. Anything unusual (help, a typo, an unknown
option) is left to click. A test checks that both parsers agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cli.search_options import SearchOptions

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
