"""The files of the skills that a model was told about, found by the paths that it was told."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.skill_paths import SCHEME
from skillhall._internal.render.escape import field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from skillhall._internal.catalog.skill_view import Offer, Offered


class ToldFile(NamedTuple):
    """A file of a skill; `is_location` is true for the SKILL.md that a listing names."""

    path: str  # relative to the skill's folder
    is_location: bool
    read: Callable[[], bytes]  # raises what `Offer.read_file` raises


@dataclass(frozen=True)
class ToldFiles:
    """The skills of one offer, by the folders that a model was told."""

    offer: Offer
    place: Callable[[Offered], str]

    def find(self, path: str) -> ToldFile | None:
        """The file that a path means; `None` if it is in none of the folders."""
        spelled = _normalized(path)
        told = self._locations.get(spelled)
        if told is not None:
            return self._file(told, told.skill.file, is_location=True)
        for folder, rest in _splits(spelled):
            row = self._folders.get(folder)
            if row is not None:
                return self._file(row, rest, is_location=False)
        return None

    def _file(self, row: Offered, path: str, *, is_location: bool) -> ToldFile:
        return ToldFile(path, is_location, partial(self.offer.read_file, row, path))

    @cached_property
    def _locations(self) -> Mapping[str, Offered]:
        rows = reversed([*self.offer])
        return {
            f"{folder}/{file}": row
            for row in rows
            for folder in self._names_of(row)
            for file in (row.skill.file, field(row.skill.file))
        }

    @cached_property
    def _folders(self) -> Mapping[str, Offered]:
        rows = [row for row in self.offer if not row.skill.is_flat]
        return {folder: row for row in reversed(rows) for folder in self._names_of(row)}

    def _names_of(self, row: Offered) -> Iterator[str]:
        """The folder as a model was told it, as it was written in the prompt, and as it is."""
        told = _slashed(self.place(row))
        return iter((told, field(told), _slashed(row.skill.directory)))


def _slashed(path: str) -> str:
    return path if os.sep == "/" else path.replace(os.sep, "/")


def _normalized(path: str) -> str:
    """The path without `//`, `.` and `..`; the scheme of an address keeps its slashes."""
    slashed = _slashed(path)
    scheme = SCHEME if slashed.startswith(SCHEME) else ""
    return scheme + posixpath.normpath(slashed.removeprefix(scheme))


def _splits(path: str) -> Iterator[tuple[str, str]]:
    """Every way to cut a path into a folder and what is below it, the longest folder first."""
    at = path.rfind("/")
    while at > 0:
        yield path[:at], path[at + 1 :]
        at = path.rfind("/", 0, at)
