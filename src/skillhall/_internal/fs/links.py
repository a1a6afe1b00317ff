"""File reads that follow symbolic links only as long as they stay below the root."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import open_root, read_file, real_path
from skillhall.errors import NotAFile, SkillFileNotFound, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.fs.handles import Folder
    from skillhall._internal.skill.bundle import RelativePath

MAX_LINKS = 8  # per file; the limit of Go's os.Root


class ContainedFile(NamedTuple):
    """Content of a file below a root, and its path with all links resolved."""

    path: str
    data: bytes


def _allow_all(_path: str) -> None:
    """Accept every path."""


def read_contained_file(
    root: str, path: RelativePath, max_bytes: int, check_path: Callable[[str], None] = _allow_all
) -> ContainedFile:
    """Read the file at `path` below `root`, following links that stay below it.

    `check_path` is called with the real path of each folder and of the file before it is opened; it
    may raise. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    try:
        folder = open_root(root)
    except OSError:
        raise SkillFileNotFound(path.text) from None
    walker = _LinkWalker(root, path.text, check_path, [folder], list(reversed(path.parts)))
    try:
        return walker.read(max_bytes)
    finally:
        for opened in walker.open_folders:
            opened.close()


@dataclass(slots=True)
class _LinkWalker:
    """Path walker that reads and resolves links itself; the OS never follows one."""

    root: str
    requested_path: str
    check_path: Callable[[str], None]
    open_folders: list[Folder]  # the root, then each folder below it
    remaining_names: list[str]  # a stack: the next name is last
    folder_names: list[str] = field(default_factory=list)  # of the open folders below the root
    link_count: int = 0

    def read(self, max_bytes: int) -> ContainedFile:
        """Read the file. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
        while self.remaining_names:
            name = self.remaining_names.pop()
            if name == "..":
                self._enter_parent()
            elif name not in ("", "."):
                path = "/".join((*self.folder_names, name))
                self.check_path(path)
                try:
                    if not self.remaining_names:
                        data = read_file(self.open_folders[-1], name, max_bytes)
                        return ContainedFile(path, data)
                    self.open_folders.append(self.open_folders[-1].open_folder(name))
                    self.folder_names.append(name)
                except OSError:
                    self._follow_link(name)
        raise NotAFile(self.requested_path)

    def _enter_parent(self) -> None:
        # The parent's handle is still open, so the parent cannot have been replaced.
        if not self.folder_names:
            raise UnsafePath(self.requested_path, "a link points outside the folder")
        self.folder_names.pop()
        self.open_folders.pop().close()

    def _follow_link(self, name: str) -> None:
        try:
            target = self.open_folders[-1].read_link(name)
        except OSError:
            raise SkillFileNotFound(self.requested_path) from None
        self.link_count += 1
        if self.link_count > MAX_LINKS:
            raise UnsafePath(self.requested_path, f"its path has more than {MAX_LINKS} links")
        if os.path.isabs(target):
            target = self._relative_to_root(target)
            while self.folder_names:
                self._enter_parent()
        self.remaining_names += reversed(target.replace(os.sep, "/").split("/"))

    def _relative_to_root(self, target: str) -> str:
        """Return the part of an absolute link target below the root. Raises: UnsafePath."""
        for root in (os.path.abspath(self.root), real_path(self.root)):
            if target == root or target.startswith(root.rstrip(os.sep) + os.sep):
                return target[len(root) :]
        raise UnsafePath(self.requested_path, "a link points outside the folder")
