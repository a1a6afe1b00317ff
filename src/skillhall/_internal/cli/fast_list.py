"""The words of `skillhall list`, read without click: loading click costs more than a short listing.

Whatever is not plain here (help, a typo, an unknown option) goes to click, which explains it. A
test holds both readings equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NAMES = ("list", "ls")
_FLAGS = {"--json": "as_json", "--long": "long", "-l": "long", "--no-index": "no_index"}
_FORMATS = {"json": True, "text": False}


class ListRequest(NamedTuple):
    """What `skillhall list` was asked for."""

    roots: tuple[str, ...] = ()
    profile: str = "lenient"
    as_json: bool = False
    long: bool = False
    no_index: bool = False
    depth: int | None = None
    follow_links: bool = False


class _NotPlain(Exception):
    """Something that click should look at."""


def read_list_words(words: Sequence[str]) -> ListRequest | None:
    """The request, if `words` are a plain `list` command."""
    if not words or words[0] not in _NAMES:
        return None
    try:
        return _read(iter(words[1:]))
    except _NotPlain:
        return None


def _read(words: Iterator[str]) -> ListRequest:
    roots: list[str] = []
    flags = dict.fromkeys(_FLAGS.values(), False)
    profile, has_json_format = ListRequest().profile, False
    for word in words:
        option, equals, value = word.partition("=")
        if word in _FLAGS:
            flags[_FLAGS[word]] = True
        elif option == "--profile":
            profile = _known_profile(value if equals else next(words, ""))
        elif option == "--format":
            has_json_format = _known_format(value if equals else next(words, ""))
        elif word == "--":
            roots += words
        elif word.startswith("-"):
            raise _NotPlain
        else:
            roots.append(word)
    as_json = flags["as_json"] or has_json_format
    return ListRequest(tuple(roots), profile, as_json, flags["long"], flags["no_index"])


def _known_profile(name: str) -> str:
    from skillhall._internal.policy.profiles import PROFILES

    if name not in PROFILES:
        raise _NotPlain
    return name


def _known_format(name: str) -> bool:
    if name not in _FORMATS:
        raise _NotPlain
    return _FORMATS[name]
