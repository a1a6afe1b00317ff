"""The gate for skills that may come from strangers: it clears only approved ones."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.skill_content import has_frontmatter_of_files
from skillhall._internal.catalog.trust.file_hashes import HashedFiles
from skillhall._internal.catalog.trust.gate import Clearance, ClearedSkill, HeldSkill
from skillhall._internal.catalog.trust.trust_summary import (
    SkillApproval,
    SkillProvenance,
    summarize_trust,
)
from skillhall._internal.fs.handles import real_path
from skillhall._internal.policy.trust.trust_action import LOAD_EVERYTHING, TrustAction
from skillhall._internal.policy.trust.trust_decision import (
    Decision,
    Origin,
    TrustFacts,
    TrustState,
    decide,
)
from skillhall._internal.settings import is_present
from skillhall._internal.skill.approved_files import ApprovedFiles, hash_files
from skillhall._internal.sources.folder.root import NAMED_SOURCE, PROJECT_SOURCE
from skillhall.errors import ConfigInvalid, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.trust.evidence import EvidenceFinder
    from skillhall._internal.catalog.trust.file_hashes import FileHashes
    from skillhall._internal.catalog.trust.policy_loader import LoadedPolicies
    from skillhall._internal.catalog.trust.state_cache import StateRow, TrustCacheFile
    from skillhall._internal.catalog.trust.trust_summary import TrustSummary
    from skillhall._internal.policy.trust.policies import Policies, SkillEvidence
    from skillhall._internal.policy.trust.trust_action import TrustPolicy
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.folder.candidate import Signature
    from skillhall._internal.storage.trust_store import TrustRecords, TrustStore

_CHANGED_WHILE_READ = "it changed while it was read"


class _Context(NamedTuple):
    """Approvals, policies and settings for decisions, read once for all skills."""

    records: TrustRecords | None  # `None` if they cannot be read
    problem: str
    has_blocks: bool
    own: Collection[str]
    linked: Collection[str]
    loaded: LoadedPolicies | None  # `None` if there are no policy files
    finder: EvidenceFinder | None  # for policies
    trusts_project: bool
    revoked: Mapping[str, str] = {}  # reasons by digest
    revocation_problem: str = ""  # why a list cannot be used

    @property
    def policies(self) -> Policies | None:
        return None if self.loaded is None else self.loaded.policies

    @property
    def can_block(self) -> bool:
        """Whether a rule may block a skill because of its content."""
        return bool(self.revoked) or (self.policies is not None and self.policies.can_block)

    @property
    def policy_problem(self) -> str:
        return "" if self.loaded is None else self.loaded.problem

    @property
    def hold_rule(self) -> str:
        """Why all skills are held that the user neither wrote nor named; "" if none are."""
        return "a policy cannot be read" if self.policy_problem else self.revocation_problem


@dataclass(frozen=True, slots=True)
class TrustGate:
    """Clears skills that the user or a policy approved, or that need no approval."""

    store: TrustStore
    hashes: FileHashes
    project: str  # the real path of its folder
    policy: TrustPolicy  # of the profile
    user_folders: frozenset[str] = frozenset()  # real paths, which may be inside the project
    can_ask: bool = False
    trust_project: bool = False  # for this run only
    policy_files: Mapping[str, str] = field(default_factory=dict)  # paths by level
    risks_file: TrustCacheFile | None = None
    open_sources: Callable[[], Callable[[str], str]] = lambda: lambda _: ""  # by folder
    revocations_file: str = ""
    is_server: bool = False  # whether the skills are those of a server
    read_revoked: Callable[[], Mapping[str, str]] = dict  # further reasons by digest

    @property
    def watched_paths(self) -> Sequence[str]:
        """The files of the approvals, of the policies and of the revocations."""
        revocations = (self.revocations_file,) if self.revocations_file else ()
        return (self.store.path, *self.policy_files.values(), *revocations)

    def find_linked_folders(self) -> Sequence[str]:
        """Return the approved targets of links that lead out of the searched folders."""
        records, _ = self._read_records()
        return () if records is None else sorted(records.find_linked_folders(self.project))

    def clear(self, skills: Iterable[CatalogSkill]) -> Clearance:
        """Clear the skills that models may get.

        Project skills are held if the approvals cannot be read.
        """
        cleared: list[ClearedSkill] = []
        held: list[HeldSkill] = []
        examined: list[HashedFiles] = []
        warned: list[str] = []
        context = self._read_context()
        can_block = context.can_block
        restricts_projects = self._restricts_projects(context)
        for skill in skills:
            origin = self._find_origin(skill, context)
            needs_approval = origin is Origin.LINK or (
                origin is Origin.PROJECT and restricts_projects
            )
            if not (needs_approval or can_block or self._judges(origin, context)):
                cleared.append(ClearedSkill(skill))
                continue
            one = self._judge(skill, origin, context)
            if not one.decision.is_cleared:
                held.append(one)
                continue
            if one.decision.action is TrustAction.WARN:
                warned.append(skill.name)
            # The files of skills that the user is writing change all the time.
            is_examined = can_block and origin is not Origin.OWN
            if is_examined and one.hashed is not None:
                examined.append(one.hashed)
            approved = self._get_approved_files(one) if needs_approval or is_examined else None
            ready = skill.with_approved(approved)
            if not has_frontmatter_of_files(ready):
                # The scan has read the description of another version.
                changed = Decision(TrustAction.HOLD, TrustState.CHANGED, _CHANGED_WHILE_READ)
                held.append(one._replace(decision=changed))
                continue
            cleared.append(ClearedSkill(ready))
        self._save(context)
        problems = (context.problem, context.policy_problem, context.revocation_problem)
        problem = "; ".join(filter(None, problems))
        warnings = [] if context.policies is None else context.policies.find_warnings(self.policy)
        if warned:
            warnings.append(f"used without an approval: {', '.join(warned)}")
        return Clearance(cleared, tuple(held), problem, tuple(warnings), tuple(examined))

    def _restricts_projects(self, context: _Context) -> bool:
        """Whether the profile or a policy may hold a skill because it is in the project."""
        policies = context.policies
        return self.policy != LOAD_EVERYTHING or (
            policies is not None
            and any(
                policies.find_action(kind, TrustAction.LOAD)[0] is not TrustAction.LOAD
                for kind in ("project", "changed")
            )
        )

    def _judges(self, origin: Origin, context: _Context) -> bool:
        """Whether a skill that needs no approval may still be held."""
        if context.records is None:
            return origin is not Origin.NAMED
        return context.has_blocks or bool(context.hold_rule)

    def find_states(self, skills: Iterable[CatalogSkill]) -> Mapping[str, StateRow]:
        """Return the states of skills by location, as rows for the cache.

        A state that could change unnoticed gets a signature that never matches, so that it is not
        reused. If the approvals cannot be read, all skills are new.
        """
        context = self._read_context()
        # The states depend on the policies and on the revocations, too.
        if context.loaded is not None or context.revoked or context.revocation_problem:
            judged = self._judge_all(skills, context)
            return {
                one.skill.location: (one.decision.state.value, [(one.skill.location, None)], b"")
                for one in judged
            }
        clearance = self.clear(skills := [*skills])
        held = {one.skill.location: one for one in clearance.held}
        approved = {one.location: one.approved for one in clearance.cleared}
        states = {}
        for skill in skills:
            location = skill.location
            one, shown = held.get(location), approved.get(location)
            known: Mapping[str, Signature | None] = {location: None}
            if not clearance.problem and self.hashes.is_stable(skill):
                hashed = self.hashes.get(skill)
                decided = shown if one is None else one.hashed
                # The decision may be about earlier files.
                if decided is None or decided.files == hashed.files:
                    known = hashed.signatures
            elif one is None and shown is None:
                known = {}
            state = TrustState.APPROVED if one is None else one.decision.state
            files = b"" if shown is None else shown.encode()
            states[location] = state.value, [*known.items()], files
        return states

    def judge_all(self, skills: Iterable[CatalogSkill]) -> list[HeldSkill]:
        """Return the decision about each skill, held or not. Raises: ConfigInvalid, OSError."""
        self.store.read()
        return self.judge_each(skills)

    def judge_each(self, skills: Iterable[CatalogSkill]) -> list[HeldSkill]:
        """Return the decision about each skill; without readable approvals, most are held."""
        return self._judge_all(skills, self._read_context())

    def judge_bundle(self, name: str, bundle: Bundle, source: str = "") -> Decision | None:
        """Return the decision about files in memory, such as an upload; None if no rules.

        Raises: SkillhallError from reading the files.
        """
        context, origin = self._read_context(), Origin.SERVER if self.is_server else Origin.NAMED
        if not context.can_block and not self._judges(origin, context):
            return None
        finder = context.finder
        evidence = None if finder is None else finder.examine_bundle(bundle, source)
        return self._decide(name, HashedFiles(hash_files(bundle), {}), origin, context, evidence)

    def summarize(self, skill: CatalogSkill) -> TrustSummary:
        """Return who wrote and approved a skill, and whether agents of the project get it."""
        [judged] = self.judge_each([skill])
        [evidence] = self.examine_all([judged])
        records, _ = self._read_records()
        base = None if records is None else records.find_base(skill.name, self.project)
        origin, approval = SkillProvenance(), None
        if base is not None:
            origin = SkillProvenance(base.source, base.commit)
            approval = SkillApproval(base.digest, base.by, base.at, base.via, base.reason)
        return summarize_trust(judged, evidence, "agents of this project", origin, approval)

    def examine_all(self, judged: Iterable[HeldSkill]) -> list[SkillEvidence | None]:
        """Return the evidence about skills; `None` if their files cannot be read."""
        finder = self._open_evidence(self.load_policies())
        found = [one.hashed and finder.examine(one.skill, one.hashed) for one in judged]
        for evidence in filter(None, found):
            _ = evidence.risk  # computed now, so that it is saved
        finder.save()
        return [*found]

    def load_policies(self) -> LoadedPolicies | None:
        """Load the policy files; `None` if there are none."""
        if not any(map(is_present, self.policy_files.values())):
            return None
        # Most machines have no policy files, and the import costs as much as that of this module.
        from skillhall._internal.catalog.trust.policy_loader import load_policies  # noqa: PLC0415

        return load_policies(self.policy_files)

    def _read_context(self) -> _Context:
        records, problem = self._read_records()
        loaded = self.load_policies()
        is_forbidden = loaded is not None and (
            bool(loaded.problem) or loaded.policies.forbids_trust_project
        )
        return _Context(
            records,
            problem,
            records is not None and records.has_blocks(self.project),
            set() if records is None else records.find_own_folders(self.project),
            set() if records is None else records.find_linked_folders(self.project),
            loaded,
            None if loaded is None else self._open_evidence(loaded),
            self.trust_project and not is_forbidden,
            *self._read_revoked(loaded),
        )

    def _read_revoked(self, loaded: LoadedPolicies | None) -> tuple[Mapping[str, str], str]:
        """Return the revoked digests, and why a list cannot be used."""
        reasons = self.read_revoked()
        # Most machines have no lists, and the import costs as much as that of this module.
        if not self.revocations_file or not is_present(self.revocations_file):
            return reasons, ""
        from skillhall._internal.storage.revocation_store import RevocationStore  # noqa: PLC0415

        try:
            known = RevocationStore(self.store.directory).read()
        except ConfigInvalid as error:
            return reasons, str(error)
        except OSError as error:
            return reasons, f"the revocations cannot be read: {error.strerror}"
        problem = ""
        if loaded is not None and loaded.policies.holds_stale:
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            expired = ", ".join(known.find_expired(now))
            problem = f"the list of revocations has expired: {expired}" if expired else ""
        return {**known.reasons, **reasons}, problem

    def _save(self, context: _Context) -> None:
        self.hashes.save()
        if context.finder is not None:
            context.finder.save()

    def _open_evidence(self, loaded: LoadedPolicies | None) -> EvidenceFinder:
        # Most decisions need no evidence, and its readers and risk rules are slow to import.
        from skillhall._internal.catalog.trust.evidence import EvidenceFinder  # noqa: PLC0415

        return EvidenceFinder(loaded, self.risks_file, self.open_sources)

    def _judge_all(self, skills: Iterable[CatalogSkill], context: _Context) -> list[HeldSkill]:
        judged = [
            self._judge(skill, self._find_origin(skill, context), context) for skill in skills
        ]
        self._save(context)
        return judged

    def _judge(self, skill: CatalogSkill, origin: Origin, context: _Context) -> HeldSkill:
        records = context.records
        if records is None and origin is not Origin.NAMED:
            unreadable = Decision(TrustAction.HOLD, TrustState.NEW, "the approvals cannot be read")
            return HeldSkill(skill, unreadable)
        try:
            hashed = self.hashes.get(skill)
        except (SkillhallError, OSError):
            unreadable = Decision(TrustAction.HOLD, TrustState.NEW, "its files cannot be read")
            return HeldSkill(skill, unreadable)
        finder = context.finder
        evidence = None if finder is None else finder.examine(skill, hashed)
        decision = self._decide(skill.name, hashed, origin, context, evidence)
        return HeldSkill(skill, decision, hashed)

    def _decide(
        self,
        name: str,
        hashed: HashedFiles,
        origin: Origin,
        context: _Context,
        evidence: SkillEvidence | None,
    ) -> Decision:
        digest, records, revoked = hashed.digest, context.records, context.revoked
        if self.is_server and revoked and (published := hashed.published_digest) in revoked:
            revoked = {**revoked, digest: revoked[published]}
        facts = TrustFacts(digest, name, origin, self.project, self.policy, self.can_ask, evidence)
        approvals = () if records is None else records.list_approved(digest, name, hashed.files)
        decision = decide(facts, approvals, context.policies, revoked)
        is_exempt = origin in (Origin.OWN, Origin.NAMED) or decision.action is TrustAction.BLOCK
        if context.hold_rule and not is_exempt:
            state = TrustState.NEW if decision.is_cleared else decision.state
            decision = Decision(TrustAction.HOLD, state, context.hold_rule)
        return decision

    def _get_approved_files(self, one: HeldSkill) -> ApprovedFiles | None:
        if one.hashed is None:
            return None
        signatures = one.hashed.get_file_signatures(one.skill.folder_handle.path)
        return ApprovedFiles(one.skill.name, one.hashed.files, signatures)

    def _find_origin(self, skill: CatalogSkill, context: _Context) -> Origin:
        if self.is_server:
            return Origin.SERVER
        if skill.real_folder is not None and skill.real_folder.path in context.linked:
            return Origin.LINK
        root, own = skill.root, context.own
        if root.source != PROJECT_SOURCE or context.trusts_project:
            is_named = root.source == NAMED_SOURCE or context.trusts_project
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
