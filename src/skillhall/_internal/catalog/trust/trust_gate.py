"""The gate for skills that may come from strangers: it clears what the user approved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.catalog.trust.gate import Clearance, ClearedSkill, HeldSkill
from skillhall._internal.fs.handles import real_path
from skillhall._internal.policy.trust_action import TrustAction
from skillhall._internal.policy.trust_decision import (
    Decision,
    Origin,
    TrustFacts,
    TrustState,
    decide,
)
from skillhall._internal.skill.approved_files import ApprovedFiles
from skillhall.errors import ConfigInvalid, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.trust.file_hashes import FileHashes
    from skillhall._internal.catalog.trust.state_cache import SkillStates
    from skillhall._internal.policy.trust_action import TrustPolicy
    from skillhall._internal.sources.folder.candidate import Signature
    from skillhall._internal.storage.trust_store import TrustRecords, TrustStore

PROJECT_SOURCE = "project"  # the label of roots that a stranger may have written
NAMED_SOURCE = "given"  # the label of roots that the user named


@dataclass(frozen=True, slots=True)
class TrustGate:
    """Clears the skills that the user approved, and those that need no approval."""

    store: TrustStore
    hashes: FileHashes
    project: str  # the real path of its folder
    policy: TrustPolicy  # of the profile
    user_folders: frozenset[str] = frozenset()  # real paths, which may be inside the project
    can_ask: bool = False
    trust_project: bool = False  # for this run only

    @property
    def watched_paths(self) -> Sequence[str]:
        """The file of the approvals."""
        return (self.store.path,)

    def find_linked_folders(self) -> Sequence[str]:
        """Return the approved targets of links that lead out of the searched folders."""
        records, _ = self._read_records()
        return () if records is None else sorted(records.find_linked_folders(self.project))

    def clear(self, skills: Iterable[CatalogSkill]) -> Clearance:
        """Clear the skills that models may get. Without readable approvals, hold the found ones."""
        cleared: list[ClearedSkill] = []
        held: list[HeldSkill] = []
        records, problem = self._read_records()
        has_blocks = records is None or records.has_blocks(self.project)
        own = set() if records is None else records.find_own_folders(self.project)
        linked = set() if records is None else records.find_linked_folders(self.project)
        for skill in skills:
            origin = self._find_origin(skill, own, linked)
            needs_approval = origin in (Origin.PROJECT, Origin.LINK)
            is_named = records is None and origin is Origin.NAMED
            if is_named or not (needs_approval or has_blocks):
                cleared.append(ClearedSkill(skill))
                continue
            one = self._judge(skill, origin, records)
            if one.decision.is_cleared:
                approved = self._get_approved_files(one) if needs_approval else None
                cleared.append(ClearedSkill(skill.with_approved(approved)))
            else:
                held.append(one)
        self.hashes.save()
        return Clearance(cleared, tuple(held), problem)

    def find_states(self, skills: Iterable[CatalogSkill]) -> SkillStates:
        """Return the states of skills by location, with the signatures of their files.

        Those of files that may change without a trace are missing, so that no cache keeps them.
        Without readable approvals, all skills are new.
        """
        clearance = self.clear(skills := [*skills])
        held = {one.skill.location: one.decision.state.value for one in clearance.held}
        independent = {one.location for one in clearance.cleared if one.approved is None}
        states = {}
        for skill in skills:
            state, location = held.get(skill.location, TrustState.APPROVED.value), skill.location
            known: Mapping[str, Signature | None] = {location: None}
            if not clearance.problem and self.hashes.is_stable(skill):
                known = self.hashes.get(skill).signatures
            elif location in independent:
                known = {}
            states[location] = state, known
        return states

    def judge_all(self, skills: Iterable[CatalogSkill]) -> list[HeldSkill]:
        """Return the decision about each skill, held or not. Raises: ConfigInvalid, OSError."""
        records = self.store.read()
        own = records.find_own_folders(self.project)
        linked = records.find_linked_folders(self.project)
        judged = [
            self._judge(skill, self._find_origin(skill, own, linked), records) for skill in skills
        ]
        self.hashes.save()
        return judged

    def _judge(
        self, skill: CatalogSkill, origin: Origin, records: TrustRecords | None
    ) -> HeldSkill:
        if records is None:
            unreadable = Decision(TrustAction.HOLD, TrustState.NEW, "the approvals cannot be read")
            return HeldSkill(skill, unreadable)
        try:
            hashed = self.hashes.get(skill)
        except (SkillhallError, OSError):
            unreadable = Decision(TrustAction.HOLD, TrustState.NEW, "its files cannot be read")
            return HeldSkill(skill, unreadable)
        digest, name = hashed.digest, skill.name
        facts = TrustFacts(digest, name, origin, self.project, self.policy, self.can_ask)
        decision = decide(facts, records.list_approved(digest, name, hashed.files))
        return HeldSkill(skill, decision, hashed)

    def _get_approved_files(self, one: HeldSkill) -> ApprovedFiles | None:
        if one.hashed is None:
            return None
        signatures = one.hashed.get_file_signatures(one.skill.folder_handle.path)
        return ApprovedFiles(one.skill.name, one.hashed.files, signatures)

    def _find_origin(self, skill: CatalogSkill, own: set[str], linked: set[str]) -> Origin:
        if skill.real_folder is not None and skill.real_folder.path in linked:
            return Origin.LINK
        root = skill.root
        if root.source != PROJECT_SOURCE or self.trust_project:
            is_named = root.source == NAMED_SOURCE or self.trust_project
            return Origin.NAMED if is_named else Origin.USER
        if root.real_path in self.user_folders:
            return Origin.USER
        is_own = bool(own) and real_path(skill.directory) in own
        return Origin.OWN if is_own else Origin.PROJECT

    def _read_records(self) -> tuple[TrustRecords | None, str]:
        """Return the records, or why they cannot be read."""
        try:
            return self.store.read(), ""
        except ConfigInvalid as error:
            return None, str(error)
        except OSError as error:
            return None, f"the approvals cannot be read: {error.strerror}"
