"""Fingerprints: stat signatures of a scan, to detect changes.

Adding or removing an entry changes the times of its folder, an edit those of the file. No file is
opened.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from skillhall._internal.catalog.cache_file import CLOCK_GRANULARITY
from skillhall._internal.catalog.head_cache import now_ns
from skillhall._internal.fs.handles import is_inside, real_path
from skillhall._internal.policy.folder_walk_rules import (
    INSTALL_FOLDER_NAMES,
    SKILLS_FOLDER,
    installed_prefix_length,
)
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.sources.folder.candidate import to_signature

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from skillhall._internal.policy.folder_walk_rules import ScanPolicy
    from skillhall._internal.sources.folder.candidate import Signature


@dataclass(frozen=True)
class Fingerprint:
    """Signatures of folders and SKILL.md files; `None` for missing ones."""

    signatures: dict[str, Signature | None]
    taken_ns: int

    def extend(self, signatures: Mapping[str, Signature | None]) -> Fingerprint:
        """Return the fingerprint with further signatures."""
        if not signatures:
            return self
        return Fingerprint({**self.signatures, **signatures}, self.taken_ns)

    def is_current(self) -> bool:
        """Whether nothing has changed since the fingerprint was taken.

        False if the clock is too coarse to tell.
        """
        return self.is_stable and are_signatures_current(self.signatures.items())

    @cached_property
    def revision(self) -> str:
        """A digest of the signatures."""
        signatures = repr(sorted(self.signatures.items()))
        return hashlib.sha256(signatures.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def is_stable(self) -> bool:
        """Whether all changes are older than the clock's granularity."""
        # Of two edits within one tick of the clock, the second does not change the signature.
        known = [signature for signature in self.signatures.values() if signature is not None]
        return all(max(s[0], s[1]) < self.taken_ns - CLOCK_GRANULARITY for s in known)


def are_signatures_current(signatures: Iterable[tuple[str, Signature | None]]) -> bool:
    """Whether no signature has changed."""
    # Called for thousands of paths: `to_signature` inlined, and `stat` as a local variable.
    stat = os.stat
    for path, signature in signatures:
        try:
            status = stat(path)
        except OSError:
            if signature is not None:
                return False
            continue
        if signature != (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino):
            return False
    return True


def take_fingerprint(
    roots: Iterable[str], policy: ScanPolicy, follow_links: Container[str] = ()
) -> Fingerprint:
    """Take the fingerprint of a scan of `roots`. Take it before the scan, not after.

    Links below the roots in `follow_links` may lead outside.
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
        """Record a folder and its content."""
        # The folder comes first, so that a change during the listing makes its signature outdated.
        self.signatures[path] = read_signature(path)
        if depth > self.policy.max_depth or len(self.visited) > self.policy.max_folders:
            return
        try:
            status = os.stat(path)
            inode = status.st_dev, status.st_ino
            if inode in self.visited:  # links can form cycles
                return
            self.visited.add(inode)
            with os.scandir(path) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            self._visit_entry(entry, depth)

    def _visit_entry(self, entry: os.DirEntry[str], depth: int) -> None:
        policy, name, path = self.policy, entry.name, entry.path
        parent = os.path.basename(os.path.dirname(path))
        if policy.reason_to_skip(name, parent) is not None:
            may_be_installed = not depth and policy.search_as_repository
            if may_be_installed and entry.is_dir(follow_symlinks=False):
                self._visit_installed(entry)
            return
        is_flat = policy.include_flat_files and depth == 0 and name.endswith(".md")
        if is_skill_md(name) or is_flat:
            self.signatures[path] = read_signature(path)
            return
        may_follow = self.follow_links or not entry.is_symlink()
        if not (may_follow or is_inside(real_path(path), self.real_root)):
            return
        try:
            is_folder = entry.is_dir()
        except OSError:  # a link to itself
            return
        if is_folder:
            self.visit_folder(path, depth + 1)

    def _visit_installed(self, entry: os.DirEntry[str]) -> None:
        """Record folders such as `.claude/skills`."""
        # A repository without other skills is scanned for installed ones.
        if not installed_prefix_length([entry.name, SKILLS_FOLDER]):
            return
        self.signatures[entry.path] = read_signature(entry.path)
        if installed_prefix_length([entry.name]):
            self.visit_folder(entry.path, 1)
            return
        for name in INSTALL_FOLDER_NAMES:
            path = os.path.join(entry.path, name)
            if os.path.isdir(path) and not os.path.islink(path):
                self.visit_folder(path, 2)


def read_signature(path: str) -> Signature | None:
    """Return the signature of a path, following links; `None` if it does not exist."""
    try:
        return to_signature(os.stat(path))
    except OSError:
        return None
