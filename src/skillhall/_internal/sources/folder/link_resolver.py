"""Links in scanned folders: which ones a scan follows, and where they lead."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import FolderHandle, is_inside
from skillhall._internal.fs.kubernetes_volumes import is_volume_link_path, to_stable_parts
from skillhall._internal.policy.folder_walk_rules import ALWAYS_SKIPPED, LinkPolicy
from skillhall._internal.skill.finding import Code, Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.folder_walk_rules import ScanPolicy
    from skillhall._internal.sources.folder.root import Root

LINK_SKIPPED = Finding(
    Code.LINK_SKIPPED, "links are not followed here", 1, "copy its target instead"
)
LINK_NOT_CHECKED = LINK_SKIPPED._replace(
    hint="copy its target instead, or allow links with --follow-links"
)
_LINK_BROKEN = Finding(Code.LINK_BROKEN, "the link is broken", 1, "remove or fix it")
_FILE_OUTSIDE = Finding(
    Code.LINK_OUTSIDE, "the link points outside the searched folders", 1, "copy its target instead"
)
_FOLDER_OUTSIDE = _FILE_OUTSIDE._replace(
    hint="copy the folder, or allow links: --follow-links, SKILLHALL_FOLLOW_LINKS=on, or"
    " followLinks in an agent's config"
)


class LinkResolver:
    """Resolves links below one root; a link that is not followed becomes a finding."""

    # A listing imports nothing else that needs `dataclasses`, which takes 4 ms.
    def __init__(self, root: Root, policy: ScanPolicy, real_roots: Sequence[str]) -> None:
        self._root = root
        self._policy = policy
        self._real_roots = real_roots  # links may point into these
        self._outside_folders: list[str] = []  # real paths of linked folders outside the roots

    def resolve_file(self, path: str) -> FolderHandle | Finding:
        """Return the location of the file, or a finding if the link is not followed."""
        target = self._resolve(path)
        return _FILE_OUTSIDE if target is None else target

    def resolve_folder(self, path: str, linked: FolderHandle | None) -> FolderHandle | Finding:
        """Return the location of the folder, or a finding if the link is not followed.

        `linked` is the location of the link itself, if it was reached through another link. If the
        root allows links to folders outside all roots, later links into such a folder are followed,
        too.
        """
        target = self._resolve(path)
        if target is not None:
            return target
        if not self._root.follow_links:
            return _FOLDER_OUTSIDE
        location = self._root.real_path if linked is None else linked.path
        if not any(is_inside(location, base) for base in self._real_roots):
            return _FOLDER_OUTSIDE  # the link itself is outside
        try:
            real = os.path.realpath(path)
        except OSError:
            return _LINK_BROKEN
        self._outside_folders.append(real)
        return _to_location(_get_file_system_root(real), real)

    def _resolve(self, path: str) -> FolderHandle | Finding | None:
        """Return the target of a link, or a finding if it is broken or not followed.

        Returns `None` if the target is outside the roots and the linked folders.
        """
        if not os.path.exists(path):
            return _LINK_BROKEN
        is_ignored = self._policy.link_policy is LinkPolicy.DO_NOT_FOLLOW
        if is_ignored and not self._root.follow_links and not is_volume_link_path(path):
            return LINK_SKIPPED
        try:
            real = os.path.realpath(path)
        except OSError:  # removed in between
            return _LINK_BROKEN
        for base in self._real_roots:
            if is_inside(real, base):
                return _to_location(base, real)
        if any(is_inside(real, base) for base in self._outside_folders):
            return _to_location(_get_file_system_root(real), real)
        return None


def _to_location(base: str, real: str) -> FolderHandle | Finding:
    """Return the location of a real path below `base`.

    Returns a finding if a part of the path, such as `.git`, is always skipped.
    """
    relative = os.path.relpath(real, base)
    parts = [] if relative == os.curdir else relative.split(os.sep)
    if not ALWAYS_SKIPPED.isdisjoint(parts):
        return LINK_SKIPPED
    return FolderHandle(base, "/".join(to_stable_parts(base, parts)))


def _get_file_system_root(path: str) -> str:
    # In a location that starts at this root, no part of the path may be a link.
    return os.path.splitdrive(path)[0] + os.sep
