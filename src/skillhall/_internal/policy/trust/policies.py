"""Rules of policy files about a skill: deny, require, allow, approving signers.

Facts that are slow to determine are read from `SkillEvidence` only if a rule needs them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.policy.trust.policy_file import Denial, PolicyFile, Requirement
from skillhall._internal.policy.trust.trust_action import STRICTNESS, TrustAction, TrustPolicy
from skillhall._internal.skill.bundle import fold_name
from skillhall._internal.skill.risks.levels import RiskLevel

if TYPE_CHECKING:
    from skillhall._internal.policy.trust.trust_decision import TrustFacts


UNKNOWN_SIGNER = "its signer is not known"
UNKNOWN_KEY = "signed by an unknown key"


class SignatureStatus(StrEnum):
    """Status of a skill's signature."""

    UNSIGNED = "unsigned"
    KNOWN = "known"  # a policy names the signer
    UNKNOWN = "unknown"  # the files are the signed ones, but no policy names the signer
    UNCHECKED = "unchecked"  # the package for checking signatures is not installed
    BROKEN = "broken"


class PolicyLevel(StrEnum):
    """Who wrote a policy. A project's policy may come from a stranger."""

    MACHINE = "machine"
    USER = "user"
    PROJECT = "project"


# A rule names signers of its own file or of a file that its author cannot write. Otherwise, a
# project could add a key under the name of a signer that the machine requires.
_VISIBLE_LEVELS = {
    PolicyLevel.MACHINE: (PolicyLevel.MACHINE,),
    PolicyLevel.USER: (PolicyLevel.MACHINE, PolicyLevel.USER),
    PolicyLevel.PROJECT: tuple(PolicyLevel),
}


class KnownSigner(NamedTuple):
    """The name of a signer, and the level of the policy that defines it."""

    level: PolicyLevel
    name: str


class SignatureCheck(NamedTuple):
    """The known signers who signed a skill; without one, `problem` says why."""

    signers: frozenset[KnownSigner] = frozenset()
    problem: str = "it is not signed"
    status: SignatureStatus = SignatureStatus.UNSIGNED

    def find_names(self, level: PolicyLevel) -> list[str]:
        """Return the names of the signers that rules of this level can name, sorted."""
        return sorted({one.name for one in self.signers if one.level in _VISIBLE_LEVELS[level]})

    def is_by(self, level: PolicyLevel, names: tuple[str, ...]) -> bool:
        """Whether a signer with one of these names signed, for a rule of this level."""
        return not {*names}.isdisjoint(self.find_names(level))

    def format_signers(self) -> str:
        """Return the signers that the machine or the user knows; "" if there is none."""
        # Signers of the project are omitted: a project could give its key any name.
        return ", ".join(self.find_names(PolicyLevel.USER))

    def describe(self) -> str:
        """Return who signed the skill, for display; "" if it is not signed."""
        return {
            SignatureStatus.UNSIGNED: "",
            SignatureStatus.KNOWN: f"signed by {self.format_signers()}",
            SignatureStatus.UNKNOWN: UNKNOWN_KEY,
            SignatureStatus.UNCHECKED: "signed, not checked",
            SignatureStatus.BROKEN: self.problem.removeprefix("its "),
        }[self.shown_status]

    @property
    def shown_status(self) -> SignatureStatus:
        """The status without signers that only a project names."""
        is_known = self.status is SignatureStatus.KNOWN
        return SignatureStatus.UNKNOWN if is_known and not self.format_signers() else self.status


class SkillEvidence(Protocol):
    """Facts about a skill that are slow to determine."""

    @property
    def source(self) -> str:
        """Where it was installed from, such as `github.com/acme/skills`; "" if unknown."""

    @property
    def risk(self) -> RiskLevel:
        """The risk level of its files."""

    @property
    def signature(self) -> SignatureCheck:
        """Who signed its files."""


class KnownEvidence(NamedTuple):
    """Evidence that is already known. The defaults are the least favorable values."""

    source: str = ""
    risk: RiskLevel = RiskLevel.L3
    signature: SignatureCheck = SignatureCheck()


class LevelPolicy(NamedTuple):
    """The policy file of one level."""

    level: PolicyLevel
    path: str
    rules: PolicyFile


class Policies(NamedTuple):
    """The policy files that exist: of the machine, the user and the project."""

    files: tuple[LevelPolicy, ...] = ()

    @property
    def can_block(self) -> bool:
        """Whether a rule may block a skill that needs no approval."""
        return any(policy.rules.denials or policy.rules.requirements for policy in self.files)

    @property
    def forbids_trust_project(self) -> bool:
        """Whether the machine's policy holds project skills despite `--trust-project`."""
        return self._get_action(PolicyLevel.MACHINE, "project") in (
            TrustAction.HOLD,
            TrustAction.BLOCK,
        )

    @property
    def servers(self) -> dict[str, tuple[str, ...]]:
        """The signers of the lists of revocations, by the URL of the server.

        Those of a project are left out: a stranger could make this machine contact any host.
        """
        servers: dict[str, tuple[str, ...]] = {}
        for level, _, rules in self.files:
            if level is not PolicyLevel.PROJECT:
                for server in rules.servers:
                    servers.setdefault(server.url, server.signers)
        return servers

    @property
    def holds_stale(self) -> bool:
        """Whether skills are held once a list of revocations has expired."""
        return any(policy.rules.holds_stale for policy in self.files)

    @property
    def has_review_dates(self) -> bool:
        """Whether approvals are due for a review after some time."""
        return any(policy.rules.review_days for policy in self.files)

    def find_review_days(self, risk: RiskLevel) -> int | None:
        """Return the days until an approval is due for a review; None if it never is."""
        days = [policy.rules.review_days.get(risk) for policy in self.files]
        return min((one for one in days if one is not None), default=None)

    def find_block_rule(self, facts: TrustFacts) -> str:
        """Return the rule that blocks the skill: a denial or requirement; "" if none."""
        evidence = facts.evidence or KnownEvidence()
        for level, path, rules in self.files:
            for number, denial in enumerate(rules.denials):
                if _is_denied(denial, facts, evidence, level):
                    return f"deny[{number}] of {path}"
        return self.find_unmet_requirement(evidence)

    def find_unmet_requirement(self, evidence: SkillEvidence) -> str:
        """Return the requirement that a skill does not meet, and why; "" if none."""
        for level, path, rules in self.files:
            for number, requirement in enumerate(rules.requirements):
                if problem := _find_unmet(requirement, evidence, level):
                    return f"require[{number}] of {path}: {problem}"
        return ""

    def find_permission(self, facts: TrustFacts) -> str:
        """Return the entry that approves the skill; "" if none does."""
        evidence = facts.evidence or KnownEvidence()
        for level, path, rules in self.files:
            if level is PolicyLevel.MACHINE and facts.digest in rules.allowed:
                return f"allow of {path}"
        for level, path, rules in self.files:
            approving = [signer.name for signer in rules.signers if signer.approves]
            if level is PolicyLevel.PROJECT or not approving:
                continue
            for name in approving:
                if KnownSigner(level, name) in evidence.signature.signers:
                    return f"signer {name} of {path}"
        return ""

    def find_action(
        self, kind: str, default: TrustAction, *, can_loosen: bool = True
    ) -> tuple[TrustAction, str]:
        """Return the action for skills of a project, and the entry that sets it.

        `kind` is "project" or "changed". The user may loosen the default. The machine and the
        project can only make it stricter: the machine limits the user, and a project may come from
        a stranger.
        """
        action, entry = default, ""
        levels = (PolicyLevel.USER, PolicyLevel.MACHINE, PolicyLevel.PROJECT)
        for policy in sorted(self.files, key=lambda policy: levels.index(policy.level)):
            new = self._get_action(policy.level, kind)
            is_stricter = new is not None and STRICTNESS[new] > STRICTNESS[action]
            if new is not None and (
                is_stricter or (can_loosen and policy.level is PolicyLevel.USER)
            ):
                action, entry = new, f"trust.{kind} of {policy.path}"
        return action, entry

    def find_warnings(self, defaults: TrustPolicy) -> list[str]:
        """Return a warning about each entry that has no effect."""
        warnings = []
        for level, path, rules in self.files:
            if level is not PolicyLevel.MACHINE and rules.allowed:
                warnings.append(
                    f"{path}: 'allow' has no effect; only the machine's policy can allow skills"
                )
            if level is PolicyLevel.PROJECT:
                if rules.servers:
                    warnings.append(f"{path}: 'server' has no effect in a project's policy")
                entries = [
                    f"'approves' of the signer {signer.name!r}"
                    for signer in rules.signers
                    if signer.approves
                ]
                entries += [
                    f"'trust.{kind}'"
                    for kind, default in (("project", defaults.new), ("changed", defaults.changed))
                    if self._is_ignored(level, kind, default)
                ]
                warnings += [
                    f"{path}: {entry} has no effect; a project's policy can only be stricter"
                    for entry in entries
                ]
        return warnings

    def _is_ignored(self, level: PolicyLevel, kind: str, default: TrustAction) -> bool:
        """Whether an action is looser than the effective one."""
        action = self._get_action(level, kind)
        effective, _ = self.find_action(kind, default)
        return action is not None and STRICTNESS[action] < STRICTNESS[effective]

    def _get_action(self, level: PolicyLevel, kind: str) -> TrustAction | None:
        for policy in self.files:
            if policy.level is level:
                return policy.rules.project if kind == "project" else policy.rules.changed
        return None


def _find_unmet(requirement: Requirement, evidence: SkillEvidence, level: PolicyLevel) -> str:
    """Return why a skill does not meet a requirement; "" if it does."""
    if not _matches_pattern(requirement.source, evidence.source):
        return ""
    signature = evidence.signature
    if signature.is_by(level, requirement.signers):
        return ""
    known = ", ".join(signature.find_names(level))
    problem = f"it is signed by {known}" if known else signature.problem or UNKNOWN_SIGNER
    return f"{problem}; it must be signed by {' or '.join(requirement.signers)}"


def _is_denied(
    denial: Denial, facts: TrustFacts, evidence: SkillEvidence, level: PolicyLevel
) -> bool:
    # The facts that take more time come last.
    return (
        denial.digest in ("", facts.digest)
        and (not denial.name or _matches_pattern(denial.name, facts.name))
        and (not denial.source or _matches_pattern(denial.source, evidence.source))
        and (denial.risk is None or evidence.risk >= denial.risk)
        and not (denial.unless_signers and evidence.signature.is_by(level, denial.unless_signers))
    )


def _matches_pattern(pattern: str, text: str) -> bool:
    """Whether `text` matches; `*` matches any characters, and case does not matter."""
    # A regular expression could take very long: a pattern may come from a stranger.
    first, *parts = fold_name(pattern).split("*")
    text = fold_name(text)
    if not parts:
        return text == first
    if not text.startswith(first):
        return False
    position, last = len(first), parts.pop()
    for part in parts:
        found = text.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return text.endswith(last) and position + len(last) <= len(text)
