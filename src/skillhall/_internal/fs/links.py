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


class Inside(NamedTuple):
    """A file that was read below a root, and its path there without any link."""

    path: str
    data: bytes


def _admit_all(_path: str) -> None:
    """No objection."""


def read_inside(
    root: str, path: RelativePath, at_most: int, admit: Callable[[str], None] = _admit_all
) -> Inside:
    """The bytes at `path` below `root`, also through links, as long as these stay below it.

    `admit` is given the real path of each folder and of the file before it is opened, and may
    raise. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    try:
        folder = open_root(root)
    except OSError:
        raise SkillFileNotFound(path.text) from None
    walk = _Walk(root, path.text, admit, [folder], list(reversed(path.parts)))
    try:
        return walk.read(at_most)
    finally:
        for held in walk.folders:
            held.close()


@dataclass(slots=True)
class _Walk:
    """A walk by handles that reads links itself: the system never follows one for it."""

    root: str
    asked: str
    admit: Callable[[str], None]
    folders: list[Folder]  # the root, then each folder on the way
    ahead: list[str]  # the names to come, the next one last
    names: list[str] = field(default_factory=list)  # of the folders below the root
    links: int = 0

    def read(self, at_most: int) -> Inside:
        """The file at the end. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
        while self.ahead:
            name = self.ahead.pop()
            if name == "..":
                self._step_back()
            elif name not in ("", "."):
                path = "/".join((*self.names, name))
                self.admit(path)
                try:
                    if not self.ahead:
                        return Inside(path, read_file(self.folders[-1], name, at_most))
                    self._enter(name)
                except OSError:
                    self._follow(name)
        raise NotAFile(self.asked)

    def _enter(self, name: str) -> None:
        self.folders.append(self.folders[-1].folder(name))
        self.names.append(name)

    def _step_back(self) -> None:
        """To the folder we came from, whose handle we hold: nobody can have swapped it."""
        if not self.names:
            raise UnsafePath(self.asked, "a link leads out of the folder")
        self.names.pop()
        self.folders.pop().close()

    def _follow(self, name: str) -> None:
        try:
            target = self.folders[-1].link(name)
        except OSError:
            raise SkillFileNotFound(self.asked) from None
        self.links += 1
        if self.links > MAX_LINKS:
            raise UnsafePath(self.asked, f"more than {MAX_LINKS} links lead to it")
        if os.path.isabs(target):
            target = self._below_root(target)
            while self.names:
                self._step_back()
        self.ahead += reversed(target.replace(os.sep, "/").split("/"))

    def _below_root(self, target: str) -> str:
        """An absolute link's way from the root on; the walk goes there by the root's handle."""
        for root in (os.path.abspath(self.root), real_path(self.root)):
            if target == root or target.startswith(root.rstrip(os.sep) + os.sep):
                return target[len(root) :]
        raise UnsafePath(self.asked, "a link leads out of the folder")
