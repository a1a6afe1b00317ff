"""Builds the skill provider for folders."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillhall._internal.catalog.folder_skill_provider import FolderSkillProvider
from skillhall._internal.catalog.head_cache import HeadCache
from skillhall._internal.catalog.search.background_index import BackgroundIndex
from skillhall._internal.catalog.trust.gate import OPEN_GATE
from skillhall._internal.fs.handles import is_inside
from skillhall._internal.policy.folder_walk_rules import installed_prefix_length
from skillhall._internal.sources.folder.root import NAMED_SOURCE, PROJECT_SOURCE
from skillhall._internal.wiring.catalog import resolve_roots
from skillhall._internal.wiring.catalog_index import get_index_path, open_configured_ranking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.catalog.trust.gate import SkillGate
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.folder.root import Root


def open_folder_provider(
    paths: Sequence[str], profile: Profile, settings: Settings, gate: SkillGate = OPEN_GATE
) -> FolderSkillProvider:
    """Open the provider of the skills in `paths`, by default in the profile's folders.

    A client may have got `paths` from a file in the project, so an agent's folder in the project
    needs the same approvals as without `paths`.
    """
    head_cache = HeadCache(settings.cache_directory) if settings.use_head_cache else None
    roots = [_label(root, settings) for root in resolve_roots(paths, profile, settings)]
    index = BackgroundIndex(
        get_index_path(roots, profile, settings), semantic=open_configured_ranking(settings)
    )
    return FolderSkillProvider(roots, profile, head_cache, index, gate)


def _label(root: Root, settings: Settings) -> Root:
    """Return an agent's folder in the project with the label of such folders."""
    project, path = os.path.realpath(settings.working_directory), root.real_path
    if root.source != NAMED_SOURCE or not is_inside(path, project):
        return root
    parts = path[len(project) :].strip(os.sep).split(os.sep)  # noqa: PTH206 - as in `project_review`
    return root._replace(source=PROJECT_SOURCE) if installed_prefix_length(parts) else root
