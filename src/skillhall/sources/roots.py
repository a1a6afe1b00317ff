"""Roots: the folders a directory source scans."""

from __future__ import annotations

import os
from typing import NamedTuple

from skillhall.sources.safety import Place


class Root(NamedTuple):
    """One folder to scan, and the label of where it belongs ("project", "user", …)."""

    path: str
    source: str = "given"
    expected: bool = True  # whether its absence is worth a finding
    base: str = ""  # a folder above it, from which on no link is followed; else it may be a link

    @classmethod
    def of(cls, text: str, base: str, source: str = "given", *, expected: bool = True) -> Root:
        """The root that `text` names: `~` expands, relative paths start at `base`."""
        expanded = os.path.expanduser(text)
        return cls(os.path.abspath(os.path.join(base, expanded)), source, expected)

    @property
    def place(self) -> Place:
        """The folder as it is opened."""
        if not self.base:
            return Place(self.path)
        return Place(self.base, os.path.relpath(self.path, self.base).replace(os.sep, "/"))

    @property
    def real_path(self) -> str:
        """The path without links; the path itself where no file system could hold it."""
        try:
            return os.path.realpath(self.path)
        except (OSError, ValueError):
            return self.path
