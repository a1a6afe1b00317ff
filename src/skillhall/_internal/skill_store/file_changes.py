"""File changes: write, delete or rename files of a skill, within the limits of skills."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import (
    RelativePath,
    find_collision,
    is_in_version_control_folder,
)
from skillhall._internal.skill.frontmatter_locator import SKILL_MD, is_skill_md
from skillhall._internal.skill_store.input_checks import EXECUTABLE_MODE, FILE_MODE
from skillhall._internal.sources.folder.bundle_reader import MAX_FILES, MAX_TOTAL_SIZE
from skillhall.errors import Conflict, EditRefused, SkillFileNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from skillhall._internal.skill_store.store import SkillFiles

    ChangeFiles: TypeAlias = Callable[[SkillFiles], SkillFiles]


MAX_SKILL_BYTES = MAX_TOTAL_SIZE


class NewFile(NamedTuple):
    """A file to write."""

    path: str
    data: bytes
    executable: bool | None = None  # None keeps the mode of the file that it replaces


def write_files(
    files: SkillFiles, new_files: Iterable[NewFile], *, replace: bool = True
) -> SkillFiles:
    """Return `files` with new files. Raises: UnsafePath, TooLarge, Conflict without `replace`."""
    written = dict(files)
    for path, data, executable in new_files:
        text = _parse_path(path)
        if text in files and not replace:
            raise Conflict(text, "choose another name, or edit the existing file")
        mode = written[text][1] if text in written else FILE_MODE
        if executable is not None:
            mode = EXECUTABLE_MODE if executable else FILE_MODE
        written[text] = data, mode
    return _check_files(written)


def delete_file(files: SkillFiles, path: str) -> SkillFiles:
    """Return `files` without one of them. Raises: SkillFileNotFound, EditRefused for SKILL.md."""
    _check_support_file(files, path, "deleted")
    return {other: file for other, file in files.items() if other != path}


def rename_file(files: SkillFiles, path: str, new_path: str) -> SkillFiles:
    """Return `files` with another path for one of them.

    Raises: SkillFileNotFound, UnsafePath, Conflict, EditRefused for SKILL.md.
    """
    _check_support_file(files, path, "renamed")
    text = _parse_path(new_path)
    if text != path and text in files:
        raise Conflict(text, "choose another name")
    return _check_files({text if other == path else other: file for other, file in files.items()})


def _parse_path(path: str) -> str:
    text = RelativePath.parse(path.strip()).text
    if is_in_version_control_folder(text):
        raise UnsafePath(path, "it is in a version control folder")
    return text


def _check_support_file(files: SkillFiles, path: str, verb: str) -> None:
    if path not in files:
        raise SkillFileNotFound(path)
    if is_skill_md(path):
        raise EditRefused(f"{SKILL_MD} cannot be {verb}: it is what makes the folder a skill")


def _check_files(files: SkillFiles) -> SkillFiles:
    if collision := find_collision(files):
        raise UnsafePath(*collision)
    if len(files) > MAX_FILES:
        raise TooLarge("the skill", MAX_FILES, "files")
    if sum(len(data) for data, _ in files.values()) > MAX_TOTAL_SIZE:
        raise TooLarge("the skill", MAX_TOTAL_SIZE)
    return files
