"""Stamps: the stat signatures of everything a scan looked at, to notice that something changed.

A new or removed entry moves its folder's times, an edit moves its file's; no file is opened.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from skillhall._internal.catalog.head_cache import CLOCK_GRANULARITY, now_ns
from skillhall._internal.fs.handles import is_inside, real_path
from skillhall._internal.policy.scan_rules import (
    INSTALL_FOLDER_NAMES,
    SKILLS_FOLDER,
    installed_prefix_length,
)
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.sources.folder.candidate import to_signature

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from skillhall._internal.policy.scan_rules import ScanPolicy
    from skillhall._internal.sources.folder.candidate import Signature


@dataclass(frozen=True)
class Fingerprint:
    """The signatures of folders and SKILL.md files; `None` for what is not there."""

    signatures: dict[str, Signature | None]
    taken_ns: int  # nanoseconds

    def is_current(self) -> bool:
        """Whether nothing has changed since, as far as the clock can tell."""
        return self.is_stable and are_signatures_current(self.signatures.items())

    @cached_property
    def is_stable(self) -> bool:
        """Whether all is older than the clock's grain: two edits within it look like one."""
        known = [signature for signature in self.signatures.values() if signature is not None]
        return all(max(s[0], s[1]) < self.taken_ns - CLOCK_GRANULARITY for s in known)


def are_signatures_current(signatures: Iterable[tuple[str, Signature | None]]) -> bool:
    """Whether everything has the signature it had; asked of thousands, so it is one plain loop."""
    stat = os.stat
    for path, signature in signatures:
        try:
            found = stat(path)
        except OSError:
            if signature is not None:
                return False
            continue
        if signature != (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino):
            return False
    return True


def take_fingerprint(
    roots: Iterable[str], policy: ScanPolicy, follow_links: Container[str] = ()
) -> Fingerprint:
    """The stamps of what a scan of `roots` looks at; take them first, then scan.

    From the roots in `follow_links`, links lead anywhere.
    """
    taken = now_ns()
    signatures: dict[str, Signature | None] = {}
    for root in roots:
        real = real_path(root)
        _SignatureWalk(real, policy, signatures, root in follow_links).visit_folder(root, 0)
    return Fingerprint(signatures, taken)


@dataclass(slots=True)
class _SignatureWalk:
    real_root: str
    policy: ScanPolicy
    signatures: dict[str, Signature | None]
    follow_links: bool = False
    visited: set[tuple[int, int]] = field(default_factory=set)

    def visit_folder(self, path: str, depth: int) -> None:
        """Note a folder, then what is in it: a change in between shows in the folder."""
        self.signatures[path] = read_signature(path)
        if depth > self.policy.max_depth or len(self.visited) > self.policy.max_folders:
            return
        try:
            entries = self._list_entries(path)
        except OSError:
            return
        for entry in entries:
            self._visit_entry(entry, depth)

    def _list_entries(self, path: str) -> list[os.DirEntry[str]]:
        found = _stat(path)
        identity = found.st_dev, found.st_ino
        if identity in self.visited:
            return []
        self.visited.add(identity)
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)

    def _is_flat(self, name: str, depth: int) -> bool:
        return self.policy.include_flat_files and depth == 0 and name.endswith(".md")

    def _visit_entry(self, entry: os.DirEntry[str], depth: int) -> None:
        parent = os.path.basename(os.path.dirname(entry.path))
        if self.policy.reason_to_skip(entry.name, parent) is not None:
            if (
                not depth
                and self.policy.search_as_repository
                and entry.is_dir(follow_symlinks=False)
            ):
                self._visit_installed(entry)
            return
        if is_skill_md(entry.name) or self._is_flat(entry.name, depth):
            self.signatures[entry.path] = read_signature(entry.path)
        elif entry.is_symlink() and not self._may_follow(entry.path):
            return
        elif _is_folder(entry):
            self.visit_folder(entry.path, depth + 1)

    def _visit_installed(self, entry: os.DirEntry[str]) -> None:
        """Note `.claude/skills` and its like, where a scan looks if there is nothing else."""
        if not installed_prefix_length([entry.name, SKILLS_FOLDER]):
            return
        self.signatures[entry.path] = read_signature(entry.path)
        if installed_prefix_length([entry.name]):
            self.visit_folder(entry.path, 1)
            return
        for below in INSTALL_FOLDER_NAMES:
            path = os.path.join(entry.path, below)
            if os.path.isdir(path) and not os.path.islink(path):
                self.visit_folder(path, 2)

    def _may_follow(self, path: str) -> bool:
        return self.follow_links or is_inside(real_path(path), self.real_root)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def read_signature(path: str) -> Signature | None:
    """The signature of what stands there, through links; `None` if nothing does."""
    try:
        return to_signature(_stat(path))
    except OSError:
        return None


def _stat(path: str) -> os.stat_result:
    return os.stat(path)
