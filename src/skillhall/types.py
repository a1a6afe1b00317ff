"""The types of values that Skillhall returns, for annotations.

```python
from skillhall import Skills
from skillhall.types import SearchHit


def format_hit(hit: SearchHit) -> str:
    return f"{hit.skill.name}: {hit.snippet}"


print([format_hit(hit) for hit in Skills.load("skills").search("forms")])
```
"""

from skillhall._internal.agents.tool_definition import Tool, ToolResult
from skillhall._internal.api.installer import Progress
from skillhall._internal.api.skills import SearchHit
from skillhall._internal.authoring.risk_report import Risk, ScannedSkill, ScanReport
from skillhall._internal.authoring.validate import ValidationReport, ValidationResult
from skillhall._internal.catalog.duplicates.duplicate_report import (
    DuplicateGroup,
    DuplicateKind,
    DuplicateReport,
    SkillCopy,
    SkillDifferences,
)
from skillhall._internal.installer.install import AddedSkill, AddReport, SkippedSkill
from skillhall._internal.installer.locked_install import LockedInstallResult
from skillhall._internal.installer.rollback import Change
from skillhall._internal.installer.update import UpdateResult
from skillhall._internal.installer.verify import VerifyResult
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parsed import Frontmatter, ParsedSkill
from skillhall._public_path import show_public_path

__all__ = [
    "AddReport",
    "AddedSkill",
    "Change",
    "Code",
    "DuplicateGroup",
    "DuplicateKind",
    "DuplicateReport",
    "Effect",
    "Frontmatter",
    "JudgedFinding",
    "LockedInstallResult",
    "ParsedSkill",
    "Progress",
    "Risk",
    "ScanReport",
    "ScannedSkill",
    "SearchHit",
    "SkillCopy",
    "SkillDifferences",
    "SkippedSkill",
    "Tool",
    "ToolResult",
    "UpdateResult",
    "ValidationReport",
    "ValidationResult",
    "VerifyResult",
]

show_public_path(__name__)
