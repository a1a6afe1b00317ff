"""Roots: the folders a directory source scans."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from skillhall._internal.fs.handles import FolderHandle, real_path

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def to_paths(paths: Paths) -> tuple[str, ...]:
    """One path or several, as a tuple of texts: a text is one path."""
    if isinstance(paths, str | os.PathLike):
        return (os.fspath(paths),)
    return tuple([os.fspath(path) for path in paths])


class Root(NamedTuple):
    """One folder to scan, and the label of where it belongs ("project", "user", …)."""

    path: str
    source: str = "given"
    is_required: bool = True  # whether its absence is worth a finding
    follow_links: bool = False  # whether a link in it may lead to a folder outside of all roots
    no_links_below: str = (
        ""  # a folder above it, from which on no link is followed; else it may be a link
    )

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
        """The root that `text` names: `~` expands, relative paths start at `base`."""
        path = os.path.abspath(os.path.join(base, os.path.expanduser(text)))
        return cls(path, source, is_required, follow_links)

    @property
    def location(self) -> FolderHandle:
        """The folder as it is opened."""
        if not self.no_links_below:
            return FolderHandle(self.path)
        return FolderHandle(
            self.no_links_below,
            os.path.relpath(self.path, self.no_links_below).replace(os.sep, "/"),
        )

    @property
    def real_path(self) -> str:
        """The path without links; the path itself if it cannot be resolved."""
        return real_path(self.path)
