"""Skills in a local folder, whose files can change while they are read."""

from __future__ import annotations

import os
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from skillhall._internal.fs.handles import FolderHandle, is_inside
from skillhall._internal.policy.folder_walk_rules import MAX_DEPTH
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.sources.folder.bundle_reader import open_bundle, read_bundle
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.folder.walker import ScanContext, scan_root
from skillhall.errors import SkillFileNotFound, SourceRejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.skill.bundle import Bundle

# Deeper than any archive may be, so that a folder and its archive give the same skills.
_SEARCH_POLICY: Final = LENIENT.scan_policy.with_depth(MAX_DEPTH)
_FILES_POLICY: Final = LENIENT.scan_policy.with_hidden_files
SOURCE_HINT: Final = "name a skill's folder, a folder of skills, or a zip or tar.gz file"


def read_folder(
    path: str, text: str, build_hint: Callable[[], str], *, follow_links: bool
) -> tuple[tuple[Bundle, ...], Callable[[Bundle], Bundle]]:
    """Return the bundles of a folder, and a function that loads one of them.

    That function reads all files as one consistent version. `text` names the folder in errors, and
    `build_hint` returns the hint for a folder without skills.
    Raises: SourceRejected, SkillFileNotFound.
    """
    handles = _find_skill_folders(path, text, follow_links=follow_links)
    if not handles:
        raise SourceRejected("path", text, f"No {SKILL_MD} found", build_hint() or SOURCE_HINT)

    def load_bundle(bundle: Bundle) -> Bundle:
        loaded = read_bundle(handles[bundle.folder], _FILES_POLICY)
        return replace(loaded, folder=bundle.folder, path=bundle.path)

    bundles = []
    for folder, handle in handles.items():
        relative = os.path.relpath(folder, path).replace(os.sep, "/")
        bundle = open_bundle(handle, _FILES_POLICY)
        bundles.append(replace(bundle, folder=folder, path="" if relative == "." else relative))
    return tuple(bundles), load_bundle


def _find_skill_folders(path: str, text: str, *, follow_links: bool) -> dict[str, FolderHandle]:
    """Return the folder itself if it is a skill, else all candidates in it, by path."""
    if not os.path.lexists(path):
        raise SkillFileNotFound(text, SOURCE_HINT)
    if not os.path.isdir(path):
        raise SourceRejected("path", text, "it is neither a folder nor an archive", SOURCE_HINT)
    root = Root(path, follow_links=follow_links)
    context = ScanContext(
        LENIENT.key_case, (root.real_path,), {}, keep_signatures=False, parse_heads=False
    )
    scan = scan_root(root, _SEARCH_POLICY, context)
    folders: dict[str, FolderHandle] = {}
    for candidate in sorted(scan.candidates, key=attrgetter("folder")):
        if candidate.file:
            location = candidate.real_folder or FolderHandle(path, candidate.folder)
            is_linked = candidate.real_folder is not None
            is_outside = is_linked and not is_inside(location.path, root.real_path)
            # A linked folder outside the source is named by its link, which is inside.
            key = os.path.join(path, candidate.folder) if is_outside else location.path
            folders[key] = location
    return folders
