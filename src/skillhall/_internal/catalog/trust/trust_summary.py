"""Trust summary of a skill: author, approval, changes, and use by agents.

Every surface shows the same four lines: `skillhall trust show`, the page of a skill, REST and MCP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.policy.trust.policies import SignatureCheck
from skillhall._internal.policy.trust.trust_action import TrustAction
from skillhall._internal.policy.trust.trust_decision import Decision, TrustState

if TYPE_CHECKING:
    from skillhall._internal.catalog.trust.gate import HeldSkill
    from skillhall._internal.policy.trust.policies import SkillEvidence

_SHORT_DIGEST = len("sha256:") + 12
_SHORT_COMMIT = 7
_LABEL_WIDTH = 10


class SkillProvenance(NamedTuple):
    """The origin of a skill, as far as it is known."""

    source: str = ""  # such as `acme/skills@v2`
    commit: str = ""


class SkillApproval(NamedTuple):
    """Who approved a version of a skill."""

    digest: str
    by: str = ""
    at: str = ""  # ISO 8601
    via: str = ""  # the command, or the version on a server
    reason: str = ""


class TrustLine(NamedTuple):
    """One of the four lines about a skill."""

    label: str  # written, approved, changed or use
    text: str

    def __str__(self) -> str:
        return f"{self.label:{_LABEL_WIDTH}}{self.text}"


class TrustSummary(NamedTuple):
    """The facts about a skill that the four lines show."""

    name: str
    decision: Decision
    users: str  # the users of the skill, such as "agents of this project"
    digest: str = ""  # "" if its files cannot be read
    origin: SkillProvenance = SkillProvenance()
    approval: SkillApproval | None = None  # the latest one, of these files or of others
    risk: str = ""
    signature: SignatureCheck = SignatureCheck()
    needs_approval: bool = True  # whether an approval would change the decision
    evals: str = ""  # the latest eval results in one line

    def with_revocation(self, reason: str) -> TrustSummary:
        """Return the summary of a skill that this server revoked."""
        decision = Decision(TrustAction.BLOCK, TrustState.BLOCKED, f"it is revoked: {reason}")
        return self._replace(decision=decision)

    def with_evals(self, text: str) -> TrustSummary:
        """Return the summary with the latest eval results.

        They are not part of the decision.
        """
        return self._replace(evals=text)

    @property
    def is_changed(self) -> bool:
        """Whether files other than the current ones were approved."""
        return self.approval is not None and self.approval.digest != self.digest

    @property
    def short_digest(self) -> str:
        """The start of the digest."""
        return self.digest[:_SHORT_DIGEST]

    @property
    def approved_digest(self) -> str:
        """The start of the digest that was approved; "" if none was."""
        return "" if self.approval is None else self.approval.digest[:_SHORT_DIGEST]

    @property
    def lines(self) -> tuple[TrustLine, ...]:
        """The four lines, in English."""
        return (
            TrustLine("written", self._describe_origin()),
            TrustLine("approved", self._describe_approval()),
            TrustLine("changed", self._describe_change()),
            TrustLine("use", self._describe_use()),
        )

    @property
    def lines_with_evals(self) -> tuple[TrustLine, ...]:
        """The four lines, and one about eval results if there are any."""
        return (*self.lines, *([TrustLine("evals", self.evals)] if self.evals else []))

    def serialize(self) -> dict[str, object]:
        """Return the facts and the lines for JSON output."""
        approval = self.approval
        approved = {} if approval is None else approval._asdict()
        return {
            "name": self.name,
            "digest": self.digest,
            "state": self.decision.state.value,
            "action": self.decision.action.value,
            "reason": self.decision.rule,
            "used": self.decision.is_cleared,
            "risk": self.risk,
            "source": self.origin.source,
            "commit": self.origin.commit,
            "signer": self.signature.format_signers(),
            "signature": self.signature.shown_status.value,
            "approval": approved or None,
            "lines": [*map(str, self.lines)],
            **({"evals": self.evals} if self.evals else {}),
        }

    def _describe_origin(self) -> str:
        commit = self.origin.commit[:_SHORT_COMMIT]
        parts = [self.origin.source or "unknown", f"commit {commit}" if commit else ""]
        return ", ".join(filter(None, (*parts, self.signature.describe())))

    def _describe_approval(self) -> str:
        approval = self.approval
        if approval is None:
            if self.decision.is_cleared:
                return f"not needed, {self.decision.rule}"
            return "no" if self.needs_approval else "not needed"
        via = f" ({approval.via})" if approval.via else ""
        reason = f"; {approval.reason}" if approval.reason else ""
        return f"by {approval.by or 'you'} on {approval.at[:10]}{via}{reason}"

    def _describe_change(self) -> str:
        current = self.short_digest or "files that were not read"
        if self.approval is None:
            return f"nothing was approved before; now {current}"
        if self.is_changed:
            return f"yes, {current} instead of {self.approved_digest}"
        return f"no, still {current}"

    def _describe_use(self) -> str:
        answer = "yes" if self.decision.is_cleared else "no"
        risk = f" (risk {self.risk})" if self.risk else ""
        return f"{self.users}: {answer}, {self.decision.rule}{risk}"


def summarize_trust(
    judged: HeldSkill,
    evidence: SkillEvidence | None,
    users: str,
    origin: SkillProvenance,
    approval: SkillApproval | None = None,
) -> TrustSummary:
    """Return the summary of a skill that a gate judged."""
    summary = TrustSummary(judged.skill.name, judged.decision, users, "", origin, approval)
    if judged.hashed is None or evidence is None:
        return summary
    return summary._replace(
        digest=judged.hashed.digest,
        origin=origin._replace(source=origin.source or evidence.source),
        risk=evidence.risk.value,
        signature=evidence.signature,
    )
