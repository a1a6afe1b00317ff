"""Reading below a root through links that stay inside: each is read and walked by handles."""

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

MAX_LINKS = 8  # on the way to one file; Go's os.Root follows as many


class ContainedFile(NamedTuple):
    """A file that was read below a root, and its path there without any link."""

    path: str
    data: bytes


def _allow_all(_path: str) -> None:
    """No objection."""


def read_contained_file(
    root: str, path: RelativePath, max_bytes: int, check_path: Callable[[str], None] = _allow_all
) -> ContainedFile:
    """The bytes at `path` below `root`, also through links, as long as these stay below it.

    `admit` is given the real path of each folder and of the file before it is opened, and may
    raise. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    try:
        folder = open_root(root)
    except OSError:
        raise SkillFileNotFound(path.text) from None
    walk = _LinkWalker(root, path.text, check_path, [folder], list(reversed(path.parts)))
    try:
        return walk.read(max_bytes)
    finally:
        for held in walk.open_folders:
            held.close()


@dataclass(slots=True)
class _LinkWalker:
    """A walk by handles that reads links itself: the system never follows one for it."""

    root: str
    requested_path: str
    check_path: Callable[[str], None]
    open_folders: list[Folder]  # the root, then each folder on the way
    remaining_names: list[str]  # the names to come, the next one last
    folder_names: list[str] = field(default_factory=list)  # of the folders below the root
    link_count: int = 0

    def read(self, max_bytes: int) -> ContainedFile:
        """The file at the end. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
        while self.remaining_names:
            name = self.remaining_names.pop()
            if name == "..":
                self._enter_parent()
            elif name not in ("", "."):
                path = "/".join((*self.folder_names, name))
                self.check_path(path)
                try:
                    if not self.remaining_names:
                        return ContainedFile(
                            path, read_file(self.open_folders[-1], name, max_bytes)
                        )
                    self._enter_folder(name)
                except OSError:
                    self._follow_link(name)
        raise NotAFile(self.requested_path)

    def _enter_folder(self, name: str) -> None:
        self.open_folders.append(self.open_folders[-1].open_folder(name))
        self.folder_names.append(name)

    def _enter_parent(self) -> None:
        """To the folder we came from, whose handle we hold: nobody can have swapped it."""
        if not self.folder_names:
            raise UnsafePath(self.requested_path, "a link leads out of the folder")
        self.folder_names.pop()
        self.open_folders.pop().close()

    def _follow_link(self, name: str) -> None:
        try:
            target = self.open_folders[-1].read_link(name)
        except OSError:
            raise SkillFileNotFound(self.requested_path) from None
        self.link_count += 1
        if self.link_count > MAX_LINKS:
            raise UnsafePath(self.requested_path, f"more than {MAX_LINKS} links lead to it")
        if os.path.isabs(target):
            target = self._relative_to_root(target)
            while self.folder_names:
                self._enter_parent()
        self.remaining_names += reversed(target.replace(os.sep, "/").split("/"))

    def _relative_to_root(self, target: str) -> str:
        """An absolute link's way from the root on; the walk goes there by the root's handle."""
        for root in (os.path.abspath(self.root), real_path(self.root)):
            if target == root or target.startswith(root.rstrip(os.sep) + os.sep):
                return target[len(root) :]
        raise UnsafePath(self.requested_path, "a link leads out of the folder")
