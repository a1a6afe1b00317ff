"""Gate that clears approved skills by their cached states.

Importing the trust gate and reading the approvals takes longer than most commands. While every
skill is approved and no file has changed, neither is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.trust.gate import Clearance, ClearedSkill
from skillhall._internal.catalog.trust.state_cache import open_state_cache
from skillhall._internal.fs.signatures import unpack_signature
from skillhall._internal.skill.approved_files import ApprovedFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.trust.state_cache import StateCache, StateRow
    from skillhall._internal.catalog.trust.trust_gate import TrustGate
    from skillhall._internal.catalog.trust.trust_summary import TrustSummary
    from skillhall._internal.policy.trust.trust_action import TrustPolicy
    from skillhall._internal.settings import Settings

_APPROVED = "approved"


class CachedGate:
    """Gate that opens the trust gate only if a skill is not known to be approved."""

    def __init__(
        self, settings: Settings, policy: TrustPolicy, open_gate: Callable[[], TrustGate]
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._open_gate = open_gate
        self._opened: TrustGate | None = None
        self._cache: StateCache | None = None

    @property
    def watched_paths(self) -> Sequence[str]:
        """The files with rules."""
        return self._settings.trust_rule_files

    def find_linked_folders(self) -> Sequence[str]:
        """Return the approved targets of links that lead out of the searched folders."""
        if self._has_rules:
            return self._gate.find_linked_folders()
        cache = self._open_cache()
        known = cache.find_linked_folders()
        if known is None:
            known = self._gate.find_linked_folders()
            cache.save((), {}, known)
        return known

    def clear(self, skills: Iterable[CatalogSkill]) -> Clearance:
        """Clear the skills that models may get, in order."""
        skills = [*skills]
        if self._has_rules:
            return self._gate.clear(skills)
        # Opened before the gate: states must not be older than the signature of the approvals.
        cache = self._open_cache()
        rows = cache.find_rows(skills)
        cleared = None if rows is None else _clear_approved(skills, rows)
        if cleared is not None:
            return Clearance(cleared)
        clearance = self._gate.clear(skills)
        if not (clearance.held or clearance.problem):
            states = self._gate.find_states(skills)
            cache.save(skills, states)
        return clearance

    def summarize(self, skill: CatalogSkill) -> TrustSummary:
        """Return who wrote and approved a skill."""
        return self._gate.summarize(skill)

    @property
    def _has_rules(self) -> bool:
        """Whether decisions depend on more than the approvals."""
        return self._settings.has_policy or self._settings.has_revocations

    @property
    def _gate(self) -> TrustGate:
        if self._opened is None:
            self._opened = self._open_gate()
        return self._opened

    def _open_cache(self) -> StateCache:
        if self._cache is None or not self._cache.is_current:
            self._cache = open_state_cache(self._settings, self._policy)
        return self._cache


def _clear_approved(
    skills: Iterable[CatalogSkill], rows: Mapping[str, StateRow]
) -> list[ClearedSkill] | None:
    """Clear skills with their approved files; `None` if the trust gate must decide."""
    cleared = []
    for skill in skills:
        state, _, files = rows[skill.location]
        if state != _APPROVED or skill.real_folder is not None or skill.real_file is not None:
            return None
        if not files:
            cleared.append(ClearedSkill(skill))
            continue
        approved = ApprovedFiles.decode(skill.name, files)
        # The scan may have read the description of another version.
        seen = skill.catalog_root.signature
        if seen is None or unpack_signature(seen) != approved.signatures.get(skill.file):
            return None
        cleared.append(ClearedSkill(skill.with_approved(approved)))
    return cleared
