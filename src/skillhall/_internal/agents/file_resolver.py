"""Resolves the paths in prompts to files of skills."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.skill_paths import SCHEME
from skillhall._internal.render.escape import escape_field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillhall._internal.catalog.skill_view import SkillView, ViewedSkill


class ResolvedFile(NamedTuple):
    """A file of a skill. `is_location` is true for the SKILL.md in a listing."""

    path: str  # relative to the skill's folder
    read: Callable[[], bytes]  # raises what `SkillView.read_file` raises
    is_location: bool = False


@dataclass(frozen=True)
class SkillFileResolver:
    """The skills of a view, by the folders in the prompt."""

    skill_view: SkillView
    get_directory: Callable[[ViewedSkill], str]

    def find(self, path: str) -> ResolvedFile | None:
        """Return the file at `path`; `None` if it is in none of the folders."""
        normalized = _normalize(path)
        read = self.skill_view.read_file
        row = self._skills_by_location.get(normalized)
        if row is not None:
            return ResolvedFile(
                row.skill.file, partial(read, row, row.skill.file), is_location=True
            )
        # A skill may contain the folder of another one, so the longest folder is tried first.
        end = normalized.rfind("/")
        while end > 0:
            row, rest = self._skills_by_folder.get(normalized[:end]), normalized[end + 1 :]
            if row is not None:
                return ResolvedFile(rest, partial(read, row, rest))
            end = normalized.rfind("/", 0, end)
        return None

    # In both tables the first skill of a view wins, hence the reversed order.
    @cached_property
    def _skills_by_location(self) -> Mapping[str, ViewedSkill]:
        return {
            f"{folder}/{file}": row
            for row in reversed([*self.skill_view])
            for folder in self._folder_spellings(row)
            for file in (row.skill.file, escape_field(row.skill.file))
        }

    @cached_property
    def _skills_by_folder(self) -> Mapping[str, ViewedSkill]:
        rows = [row for row in self.skill_view if not row.skill.is_flat]
        return {folder: row for row in reversed(rows) for folder in self._folder_spellings(row)}

    def _folder_spellings(self, row: ViewedSkill) -> tuple[str, str, str]:
        """Return the folder as shown to models, as escaped in the prompt, and as it is on disk."""
        shown = _to_posix(self.get_directory(row))
        return shown, escape_field(shown), _to_posix(row.skill.directory)


def _to_posix(path: str) -> str:
    return path if os.sep == "/" else path.replace(os.sep, "/")


def _normalize(path: str) -> str:
    """Return the path without `//`, `.` and `..`, except in the scheme of a URI."""
    slashed = _to_posix(path)
    scheme = SCHEME if slashed.startswith(SCHEME) else ""
    return scheme + posixpath.normpath(slashed.removeprefix(scheme))
