"""The files of the skills that a model was told about, found by the paths that it was told."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.skill_paths import SCHEME
from skillhall._internal.render.escape import escape_field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from skillhall._internal.catalog.skill_view import SkillView, ViewedSkill


class ResolvedFile(NamedTuple):
    """A file of a skill; `is_location` is true for the SKILL.md that a listing names."""

    path: str  # relative to the skill's folder
    is_location: bool
    read: Callable[[], bytes]  # raises what `Offer.read_file` raises


@dataclass(frozen=True)
class SkillFileResolver:
    """The skills of one offer, by the folders that a model was told."""

    skill_view: SkillView
    get_directory: Callable[[ViewedSkill], str]

    def find(self, path: str) -> ResolvedFile | None:
        """The file that a path means; `None` if it is in none of the folders."""
        spelled = _normalize(path)
        told = self._skills_by_location.get(spelled)
        if told is not None:
            return self._build_file(told, told.skill.file, is_location=True)
        for folder, rest in _iter_splits(spelled):
            row = self._skills_by_folder.get(folder)
            if row is not None:
                return self._build_file(row, rest, is_location=False)
        return None

    def _build_file(self, row: ViewedSkill, path: str, *, is_location: bool) -> ResolvedFile:
        return ResolvedFile(path, is_location, partial(self.skill_view.read_file, row, path))

    @cached_property
    def _skills_by_location(self) -> Mapping[str, ViewedSkill]:
        rows = reversed([*self.skill_view])
        return {
            f"{folder}/{file}": row
            for row in rows
            for folder in self._folder_spellings(row)
            for file in (row.skill.file, escape_field(row.skill.file))
        }

    @cached_property
    def _skills_by_folder(self) -> Mapping[str, ViewedSkill]:
        rows = [row for row in self.skill_view if not row.skill.is_flat]
        return {folder: row for row in reversed(rows) for folder in self._folder_spellings(row)}

    def _folder_spellings(self, row: ViewedSkill) -> Iterator[str]:
        """The folder as a model was told it, as it was written in the prompt, and as it is."""
        told = _to_posix(self.get_directory(row))
        return iter((told, escape_field(told), _to_posix(row.skill.directory)))


def _to_posix(path: str) -> str:
    return path if os.sep == "/" else path.replace(os.sep, "/")


def _normalize(path: str) -> str:
    """The path without `//`, `.` and `..`; the scheme of an address keeps its slashes."""
    slashed = _to_posix(path)
    scheme = SCHEME if slashed.startswith(SCHEME) else ""
    return scheme + posixpath.normpath(slashed.removeprefix(scheme))


def _iter_splits(path: str) -> Iterator[tuple[str, str]]:
    """Every way to cut a path into a folder and what is below it, the longest folder first."""
    at = path.rfind("/")
    while at > 0:
        yield path[:at], path[at + 1 :]
        at = path.rfind("/", 0, at)
