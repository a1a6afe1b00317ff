"""Inventory of this machine: the skills of the project and of the user, without paths."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from skillhall._internal.installer.locked_sources import normalize_source
from skillhall._internal.installer.project import Project
from skillhall._internal.policy.trust.inventory_item import InventoryItem
from skillhall._internal.sources.opener import parse_source_ref
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.catalog.trust.gate import HeldSkill
    from skillhall._internal.policy.trust.policies import SkillEvidence
    from skillhall._internal.settings import Settings


def build_inventory(
    judged: Sequence[HeldSkill], evidence: Sequence[SkillEvidence | None], settings: Settings
) -> list[InventoryItem]:
    """Return the skills, sorted; copies of one skill are listed once."""
    origins = _read_origins(settings)
    items = set()
    for one, found in zip(judged, evidence, strict=True):
        source, commit = origins.get(os.path.realpath(one.skill.directory), ("", ""))
        items.add(
            InventoryItem(
                one.skill.name,
                "" if one.hashed is None else one.hashed.digest,
                source,
                commit,
                "" if found is None else found.signature.format_signers(),
                one.decision.state.value,
                "" if found is None else found.risk.value,
            )
        )
    return sorted(items)


def is_locked(folder: str, settings: Settings) -> bool:
    """Whether a lock file has the digest of the skill in a folder."""
    return os.path.realpath(folder) in _read_origins(settings)


def _read_origins(settings: Settings) -> dict[str, tuple[str, str]]:
    """Return the source and the commit of installed skills, by folder."""
    origins: dict[str, tuple[str, str]] = {}
    for is_user in (True, False):
        project = Project.from_settings(settings, user=is_user)
        # A broken lock file says as little about a skill as a missing one.
        with suppress(SkillhallError, OSError):
            for key, entry in project.read_lock().entries.items():
                reference = parse_source_ref(entry.source, allow_loopback_http=True)
                # The path of a folder may contain the name of the user.
                source = normalize_source(reference, settings) if reference.is_remote else ""
                for path in (key, *(target.path for target in entry.targets)):
                    origins[os.path.realpath(project.path(path))] = source, entry.commit
    return origins
