"""Risk levels of skills, which policies name. The scan computes them."""

from skillhall._internal.skill.risks.levels import RiskLevel, rate_risk

__all__ = ["RiskLevel", "rate_risk"]
