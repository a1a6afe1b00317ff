"""Parses the arguments of `skillhall list` without click, whose import is slower than a listing.

Anything unusual (help, a typo, an unknown option) is left to click. A test checks that both
parsers agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_COMMAND_NAMES = ("list", "ls")
_FLAG_FIELDS = {"--json": "as_json", "--long": "long", "-l": "long", "--no-index": "no_index"}
_FORMATS = {"json": True, "text": False}


class ListRequest(NamedTuple):
    """The options of `skillhall list`."""

    roots: tuple[str, ...] = ()
    profile: str = "lenient"
    as_json: bool = False
    long: bool = False
    no_index: bool = False
    depth: int | None = None
    follow_links: bool = False


class _NeedsClick(Exception):
    """The arguments must be parsed by click."""


def parse_list_arguments(argv: Sequence[str]) -> ListRequest | None:
    """Return the request if `argv` is a plain `list` command."""
    if not argv or argv[0] not in _COMMAND_NAMES:
        return None
    try:
        return _parse_arguments(iter(argv[1:]))
    except _NeedsClick:
        return None


def _parse_arguments(arguments: Iterator[str]) -> ListRequest:
    roots: list[str] = []
    flags = dict.fromkeys(_FLAG_FIELDS.values(), False)
    profile, has_json_format = ListRequest().profile, False
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if argument in _FLAG_FIELDS:
            flags[_FLAG_FIELDS[argument]] = True
        elif option == "--profile":
            profile = _parse_profile(value if equals else next(arguments, ""))
        elif option == "--format":
            has_json_format = _parse_format(value if equals else next(arguments, ""))
        elif argument == "--":
            roots += arguments
        elif argument.startswith("-"):
            raise _NeedsClick
        else:
            roots.append(argument)
    as_json = flags["as_json"] or has_json_format
    return ListRequest(tuple(roots), profile, as_json, flags["long"], flags["no_index"])


def _parse_profile(name: str) -> str:
    from skillhall._internal.policy.profiles import PROFILES

    if name not in PROFILES:
        raise _NeedsClick
    return name


def _parse_format(name: str) -> bool:
    if name not in _FORMATS:
        raise _NeedsClick
    return _FORMATS[name]
