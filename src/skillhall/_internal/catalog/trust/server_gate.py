"""The gate of a server: the operator's rules apply to every served skill.

A served skill needs no approval: authors and reviewers decide what a server has. Policies of the
machine, the user and the run directory can deny it, and so can a block by `skillhall untrust`.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cache import LruCache
from skillhall._internal.catalog.fingerprint import are_signatures_current, read_signature
from skillhall._internal.catalog.trust.gate import Clearance, clear_all
from skillhall._internal.catalog.trust.policy_loader import NO_POLICIES
from skillhall._internal.catalog.trust.trust_summary import (
    SkillProvenance,
    TrustSummary,
    summarize_trust,
)
from skillhall._internal.policy.trust.policies import SignatureStatus
from skillhall._internal.policy.trust.trust_action import TrustAction
from skillhall._internal.policy.trust.trust_decision import Decision, TrustState
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE
from skillhall._internal.storage.server_revocations import RevokedDigests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.trust.gate import HeldSkill
    from skillhall._internal.catalog.trust.trust_gate import TrustGate
    from skillhall._internal.catalog.trust.trust_summary import SkillApproval
    from skillhall._internal.skill.bundle import Bundle

_MAX_SNAPSHOTS = 64  # clearances of snapshots of repositories and uploads
CHECK_INTERVAL = 1.0  # seconds between checks of policy files and of the files that they judge
COST_FACTOR = 20  # checks take at most a twentieth of the time
_SERVED = Decision(TrustAction.LOAD, TrustState.APPROVED, "this server serves it")
SERVED_TO = "agents of this server"


class PolicyOverview(NamedTuple):
    """The policy files in effect, without paths of the machine."""

    levels: tuple[str, ...]
    problem: str
    warnings: tuple[str, ...]


class ServedClearance(NamedTuple):
    """The clearance of one revision of the skills."""

    revision: str  # changes with the skills and with the rules
    clearance: Clearance

    @property
    def held_ids(self) -> frozenset[str]:
        """The ids of the skills that models do not get."""
        return frozenset(one.skill.id for one in self.clearance.held)


class _Cached(NamedTuple):
    revision: str  # of the skills
    rules: tuple[object, ...]  # signatures of the files with rules
    served: ServedClearance


class ServerGate:
    """Clears the skills of a server. Thread-safe.

    Without rules, nothing is read: the policy files are only checked for existence.
    """

    def __init__(
        self,
        gate: TrustGate | None = None,
        read_revoked: Callable[[], RevokedDigests] = RevokedDigests,
    ) -> None:
        """Create a gate with the server's revocations; clears all skills without `gate`."""
        self.read_revoked = read_revoked
        self._gate = gate and replace(gate, read_revoked=self._read_reasons)
        self._cached: _Cached | None = None
        self._next_check = 0.0  # time of the monotonic clock
        self._number = 0  # number of the revocations at the last check
        self._changes = 0  # number of changes of rules or files under the same revision
        self._lock = threading.Lock()

    def clear(self, revision: str, skills: Iterable[CatalogSkill]) -> ServedClearance:
        """Return the clearance of a revision; the same object if nothing has changed."""
        cached = self._cached
        if cached is not None and cached.revision == revision and not self._is_check_due():
            return cached.served
        with self._lock:
            cached = self._cached
            if cached is not None and cached.revision == revision:
                if self._is_current(cached):
                    return cached.served
                self._changes += 1
            signatures, self._number = self._read_rules(), self.read_revoked().number
            clearance = self._clear(skills)
            self._next_check = time.monotonic() + CHECK_INTERVAL
            suffix = f"-{self._changes}" if self._changes else ""
            served = ServedClearance(f"{revision}{suffix}", clearance)
            self._cached = _Cached(revision, signatures, served)
            return served

    def clear_uncached(self, skills: Iterable[CatalogSkill]) -> Clearance:
        """Return the clearance of other skills, such as an earlier version of one."""
        with self._lock:  # the caches of the gate are not thread-safe
            return self._clear(skills)

    def find_problem(self, name: str, bundle: Bundle, source: str = "") -> str:
        """Return why models do not get files in memory, such as an upload; "" if they do.

        A broken signature is a problem, too. Raises: SkillhallError from reading the files.
        """
        if self._gate is None:
            return ""
        with self._lock:  # the caches of the gate are not thread-safe
            decision = self._gate.judge_bundle(name, bundle, source)
        if decision is not None and not decision.is_cleared:
            return self._hide_paths(decision.rule)
        if SIGNATURE_FILE not in bundle.files:
            return ""
        signature = NO_POLICIES.check_signature(bundle)
        return signature.problem if signature.status is SignatureStatus.BROKEN else ""

    def find_cleared(self, revision: str) -> ServedClearance | None:
        """Return the clearance of a revision if it is known and no check is due.

        Never blocks.
        """
        cached = self._cached
        if cached is None or cached.revision != revision or self._is_check_due():
            return None
        return cached.served

    def _clear(self, skills: Iterable[CatalogSkill]) -> Clearance:
        if self._gate is None:
            return Clearance(clear_all(skills))
        clearance = self._gate.clear(skills)
        return clearance._replace(
            held=tuple(map(self._without_paths, clearance.held)),
            problem=self._hide_paths(clearance.problem),
            warnings=tuple(map(self._hide_paths, clearance.warnings)),
        )

    def summarize(
        self, skill: CatalogSkill, origin: SkillProvenance, approval: SkillApproval | None = None
    ) -> TrustSummary:
        """Return who wrote and approved a skill, and whether models get it."""
        [summary] = self.summarize_all([skill], [origin], [approval])
        return summary

    def summarize_all(
        self,
        skills: Sequence[CatalogSkill],
        origins: Sequence[SkillProvenance],
        approvals: Sequence[SkillApproval | None] | None = None,
    ) -> list[TrustSummary]:
        """Return the summaries of several skills, in order."""
        if self._gate is None:
            return [
                TrustSummary(skill.name, _SERVED, SERVED_TO, origin=origin)
                for skill, origin in zip(skills, origins, strict=True)
            ]
        with self._lock:  # the caches of the gate are not thread-safe
            judged = [*map(self._without_paths, self._gate.judge_each(skills))]
            found = self._gate.examine_all(judged)
        known = approvals or [None] * len(judged)
        return [
            summarize_trust(one, evidence, SERVED_TO, origin, approval)._replace(
                needs_approval=False
            )
            for one, evidence, origin, approval in zip(judged, found, origins, known, strict=True)
        ]

    def describe_policies(self) -> PolicyOverview:
        """Return which policy files are in effect."""
        loaded = None if self._gate is None else self._gate.load_policies()
        if self._gate is None or loaded is None:
            return PolicyOverview((), "", ())
        return PolicyOverview(
            tuple(one.level.value for one in loaded.policies.files),
            self._hide_paths(loaded.problem),
            tuple(map(self._hide_paths, loaded.policies.find_warnings(self._gate.policy))),
        )

    def _read_reasons(self) -> Mapping[str, str]:
        revoked = self.read_revoked().by_digest
        return {digest: one.describe() for digest, one in revoked.items()}

    def _is_check_due(self) -> bool:
        if self._gate is None:
            return False
        is_revoked_now = self._number != self.read_revoked().number
        return is_revoked_now or time.monotonic() >= self._next_check

    def _is_current(self, cached: _Cached) -> bool:
        """Whether the rules and the files that decisions depend on are unchanged."""
        if not self._is_check_due():
            return True
        started = time.monotonic()
        is_current = cached.rules == self._read_rules() and are_signatures_current(
            cached.served.clearance.signatures.items()
        )
        now = time.monotonic()
        self._next_check = now + max(CHECK_INTERVAL, (now - started) * COST_FACTOR)
        return is_current

    def _read_rules(self) -> tuple[object, ...]:
        """Return the signatures of the rule files, and the number of the revocations."""
        if self._gate is None:
            return ()
        return (*map(read_signature, self._gate.watched_paths), self.read_revoked().number)

    def _without_paths(self, one: HeldSkill) -> HeldSkill:
        rule = self._hide_paths(one.decision.rule)
        return one._replace(decision=one.decision._replace(rule=rule))

    def _hide_paths(self, text: str) -> str:
        """Replace the paths of policy files: clients must not see paths of the server."""
        for level, path in {} if self._gate is None else self._gate.policy_files.items():
            if path:
                text = text.replace(path, f"the {level}'s policy")
        return text


class PromptGate:
    """Finds held skills of repositories, whose prompts are held, too. Thread-safe."""

    def __init__(self, open_gate: Callable[[], ServerGate]) -> None:
        self._open_gate = open_gate
        self._gates = LruCache[str, ServerGate](_MAX_SNAPSHOTS)

    def find_held(self, revision: str, skills: Iterable[CatalogSkill]) -> frozenset[str]:
        """Return the names of held skills."""
        gate = self._gates.get(revision)
        if gate is None:
            gate = self._open_gate()
            self._gates.put(revision, gate)
        return _get_held_names(gate.clear(revision, skills))

    def find_known_held(self, revision: str) -> frozenset[str] | None:
        """Return the names of held skills; None if files would have to be read.

        Never blocks.
        """
        gate = self._gates.get(revision)
        served = None if gate is None else gate.find_cleared(revision)
        return None if served is None else _get_held_names(served)


def _get_held_names(served: ServedClearance) -> frozenset[str]:
    return frozenset(one.skill.name for one in served.clearance.held)
