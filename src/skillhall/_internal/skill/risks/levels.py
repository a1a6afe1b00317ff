"""Risk levels of skills, L0 to L3, with OWASP's names."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.tiers import TIERS, Tier


class RiskLevel(StrEnum):
    """How much harm a skill could do, judged by the findings of the scan."""

    L0 = "L0"
    L1 = "L1"  # it has scripts, or loads remote images
    L2 = "L2"  # it could run programs on its own, or the scan found something suspicious
    L3 = "L3"  # it could change the agent or the machine, or the scan found an attack


_LEVELS = {
    **{code: RiskLevel.L3 for code, tier in TIERS.items() if tier is Tier.HIGH},
    **{code: RiskLevel.L2 for code, tier in TIERS.items() if tier is Tier.MEDIUM},
    Code.RISK_UNDERSTATED: RiskLevel.L0,  # it depends on the level, not the other way round
    Code.AGENT_CONFIG_WRITE: RiskLevel.L3,
    Code.DANGEROUS_FLAG: RiskLevel.L3,
    Code.PERSISTENCE: RiskLevel.L3,
    Code.BROAD_TOOLS: RiskLevel.L2,
    Code.HOOKS_FIELD: RiskLevel.L2,
    Code.DYNAMIC_COMMAND: RiskLevel.L2,
    Code.HAS_EXECUTABLES: RiskLevel.L2,
    Code.HAS_ARCHIVES: RiskLevel.L2,
    Code.SCAN_INCOMPLETE: RiskLevel.L2,
    Code.HAS_SCRIPTS: RiskLevel.L1,
    Code.EXECUTE_BITS: RiskLevel.L1,
    Code.KNOWN_INSTALLER: RiskLevel.L1,
    Code.REMOTE_IMAGE: RiskLevel.L1,
}


def rate_risk(codes: Iterable[Code]) -> RiskLevel:
    """Return the highest level among the findings of a skill."""
    return max((_LEVELS.get(code, RiskLevel.L0) for code in codes), default=RiskLevel.L0)
