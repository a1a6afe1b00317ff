"""Published folders: compares a folder with the files that it should have, and replaces it.

A file in the folder lists what was published, so that no other file is ever removed.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.fs.handles import EntryKind, open_root, read_below, read_file
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.publishing.version_log import describe_files
from skillhall._internal.skill.bundle import RelativePath, find_collision
from skillhall._internal.strict_json import InvalidJson, JsonObject, render_json
from skillhall.errors import ConfigInvalid, SkillFileNotFound, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.fs.handles import Folder

FileTree: TypeAlias = "Mapping[str, tuple[bytes, int]]"  # content and mode by path

RECORD_FILE = ".skillhall-publish.json"
FILE_MODE, EXECUTABLE_MODE = 0o644, 0o755
_MAX_SIZE = 1024 * 1024 * 1024  # bytes of one file
_MAX_NAMED = 5  # files in an error


class OutputChange(NamedTuple):
    """A file that differs from what was published before."""

    path: str
    kind: str  # added, changed or removed


class PlannedFolder(NamedTuple):
    """The files of a published folder, and how they differ from those on disk."""

    path: str
    files: FileTree  # with the list of published files
    changes: tuple[OutputChange, ...]
    exists: bool

    def read_present(self, path: str) -> bytes:
        """Read a file as it was published before; empty if it is new. Raises: OSError, TooLarge."""
        try:
            with open_root(self.path) as root:
                return read_below(root, RelativePath.parse(path), _MAX_SIZE)
        except (FileNotFoundError, SkillFileNotFound):
            return b""

    def apply(self) -> None:
        """Replace the folder atomically, if a file differs. Raises: OSError."""
        if not self.changes:
            return
        parent, name = os.path.split(self.path)
        Path(parent).mkdir(parents=True, exist_ok=True)
        with WritableFolder(parent) as base, base.lock():
            base.recover()
            if self.exists:
                base.replace_folder(name, self.files)
            else:
                base.create_folder(name, self.files)


def plan_folder(path: str, files: FileTree, config: str) -> PlannedFolder:
    """Compare a folder with the files that it should have.

    Raises: UnsafePath, ConfigInvalid if the folder has files of others, OSError.
    """
    check_paths(files)
    described = describe_files(files)
    record = render_json({"files": described}) + b"\n"
    complete = {**files, RECORD_FILE: (record, FILE_MODE)}
    old: dict[str, str] = {}
    exists = os.path.lexists(path)
    if exists:
        old = _describe_folder(path, config)
        published = _read_record(path)
        unknown = [one for one in old if one not in published and old[one] != described.get(one)]
        unknown = [one for one in unknown if one != RECORD_FILE]
        if unknown:
            names = ", ".join(unknown[:_MAX_NAMED])
            raise ConfigInvalid(
                config,
                f"{path!r} has files that Skillhall did not publish: {names}",
                "move them away, or choose another folder for the target",
            )
    changes = compare_files(old, describe_files(complete))
    return PlannedFolder(path, complete, changes, exists)


def compare_files(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[OutputChange, ...]:
    """Return the files whose mode or content differs, sorted by path."""
    return tuple(
        OutputChange(path, "added" if path not in old else "changed" if path in new else "removed")
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
    )


def check_paths(files: FileTree) -> None:
    """Check that the paths are safe on every file system. Raises: UnsafePath."""
    for path in files:
        RelativePath.parse(path)
    if (collision := find_collision(files)) is not None:
        raise UnsafePath(*collision)


def _describe_folder(path: str, config: str) -> dict[str, str]:
    found: dict[str, tuple[bytes, int]] = {}
    strange: list[str] = []

    def read(folder: Folder, prefix: str) -> None:
        for name, kind in sorted(folder.list_entries()):
            if kind is EntryKind.FOLDER:
                with folder.open_folder(name) as subfolder:
                    read(subfolder, f"{prefix}{name}/")
            elif kind is EntryKind.FILE:
                mode = stat.S_IMODE(folder.stat(name).st_mode)
                found[f"{prefix}{name}"] = read_file(folder, name, _MAX_SIZE), mode
            else:
                strange.append(f"{prefix}{name}")

    if os.path.islink(path) or not os.path.isdir(path):
        raise ConfigInvalid(config, f"{path!r} is not a folder", "choose another folder")
    with open_root(path) as root:
        read(root, "")
    return {**describe_files(found), **dict.fromkeys(strange, "")}


def _read_record(path: str) -> frozenset[str]:
    """Return the paths that were published; none if there is no valid record."""
    try:
        with open_root(path) as root:
            data = read_file(root, RECORD_FILE, _MAX_SIZE)
        return frozenset(JsonObject.parse(data).require("files", dict))
    except (FileNotFoundError, InvalidJson):
        return frozenset()
