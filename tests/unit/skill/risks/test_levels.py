"""Risk levels of skills."""

import pytest

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.levels import RiskLevel, rate_risk


@pytest.mark.parametrize(
    ("codes", "level"),
    [
        ([], RiskLevel.L0),
        ([Code.NAME_MISSING], RiskLevel.L0),
        ([Code.HAS_SCRIPTS], RiskLevel.L1),
        ([Code.HAS_SCRIPTS, Code.PIPE_TO_SHELL], RiskLevel.L2),
        ([Code.BROAD_TOOLS], RiskLevel.L2),
        ([Code.HIDDEN_UNICODE, Code.HAS_SCRIPTS], RiskLevel.L3),
        ([Code.PERSISTENCE], RiskLevel.L3),
    ],
)
def test_highest_level_of_the_findings_counts(codes: list[Code], level: RiskLevel) -> None:
    assert rate_risk(codes) is level
