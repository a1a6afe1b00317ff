"""Skills in folders whose files are revoked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillhall._internal.catalog.trust.file_hashes import FileHashes
from skillhall._internal.catalog.trust.gate import HeldSkill
from skillhall._internal.catalog.trust.state_cache import TrustCacheFile
from skillhall._internal.policy.trust.trust_decision import Origin, TrustFacts, decide
from skillhall._internal.storage.revocation_store import KnownRevocations, RevocationStore
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall._internal.catalog.catalog import CatalogSkill


def read_revocations(path: str) -> KnownRevocations:
    """Read the lists in a file. Raises: ConfigInvalid, OSError."""
    return RevocationStore(os.path.dirname(path)).read()


def hold_revoked(
    skills: Iterable[CatalogSkill], reasons: Mapping[str, str]
) -> tuple[list[CatalogSkill], list[HeldSkill]]:
    """Return the skills that are not revoked, and the revoked ones; `reasons` are by digest."""
    if not reasons:
        return [*skills], []
    hashes = FileHashes(TrustCacheFile("", "", ""))  # in memory only
    allowed, held = [], []
    for skill in skills:
        try:
            hashed = hashes.get(skill)
        except (SkillhallError, OSError):
            allowed.append(skill)  # reading it will report the problem
            continue
        facts = TrustFacts(hashed.digest, skill.name, Origin.NAMED, "")
        decision = decide(facts, revocations=reasons)
        if decision.is_cleared:
            allowed.append(skill)
        else:
            held.append(HeldSkill(skill, decision, hashed))
    return allowed, held
