"""Roots: the folders to scan."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from skillhall._internal.fs.handles import FolderHandle, real_path

PROJECT_SOURCE = "project"  # the label of roots that a stranger may have written
NAMED_SOURCE = "given"  # the label of roots that the user named

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def to_paths(paths: Paths) -> tuple[str, ...]:
    """Return one path or several as a tuple; a string is one path."""
    if isinstance(paths, str | os.PathLike):
        return (os.fspath(paths),)
    return tuple([os.fspath(path) for path in paths])


class Root(NamedTuple):
    """Folder to scan, with the label of its origin ("project", "user", …)."""

    path: str
    source: str = NAMED_SOURCE
    is_required: bool = True  # a missing folder gives a finding
    follow_links: bool = False  # links may point to folders outside all roots
    no_links_below: str = ""  # a parent folder; links between it and the root are not followed

    @classmethod
    def resolve(
        cls,
        text: str,
        base: str,
        source: str = "given",
        *,
        is_required: bool = True,
        follow_links: bool = False,
    ) -> Root:
        """Resolve a path: `~` is expanded, relative paths start at `base`."""
        path = os.path.abspath(os.path.join(base, os.path.expanduser(text)))
        return cls(path, source, is_required, follow_links)

    @property
    def location(self) -> FolderHandle:
        """Location to open; links between `no_links_below` and the root are rejected."""
        if not self.no_links_below:
            return FolderHandle(self.path)
        path = os.path.relpath(self.path, self.no_links_below).replace(os.sep, "/")
        return FolderHandle(self.no_links_below, path)

    @property
    def real_path(self) -> str:
        """Path without links, or the path itself if it cannot be resolved."""
        return real_path(self.path)
