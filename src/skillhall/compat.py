"""Functions and types of the designs behind Skillhall, under their original names.

```python
from skillhall.compat import Globs, InstructionSkills, InstructionSource, tools_for

skills = InstructionSkills([InstructionSource("skills", Globs(inline=("pdf-*",)))])
print(skills.current())
print(tools_for(".")["ReadFile"].call({"path": "skills/pdf-tools/SKILL.md"}).text)
```
"""

from skillhall import (
    create_skill_tool,
    discover_skills,
    fetch_skill,
    fetch_skills,
    load_skill_bundle,
    load_skill_bundles,
    parse_skill_metadata,
    setup_agent_environment,
    skills_to_xml,
)
from skillhall._internal.agents.file_tools import ReadTools
from skillhall._internal.agents.instruction_skills import InstructionSkills, InstructionSource
from skillhall._internal.api.compat.sandbox import FolderSandbox, MemorySandbox, Sandbox
from skillhall._internal.api.compat.skill_tool import SkillTool
from skillhall._internal.api.compat.skills_module import SkillBundle, SkillList, SkillMetadata
from skillhall._internal.api.compat.tool_guard import ToolGuard
from skillhall._internal.api.compat.toolbox import tools_for
from skillhall._internal.policy.selection import Globs
from skillhall._internal.render.listing import render_local
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._public_path import show_public_path

__all__ = [
    "FolderSandbox",
    "Globs",
    "InstructionSkills",
    "InstructionSource",
    "LocalSkills",
    "MemorySandbox",
    "ReadTools",
    "Sandbox",
    "SkillBundle",
    "SkillList",
    "SkillMetadata",
    "SkillTool",
    "ToolGuard",
    "create_skill_tool",
    "discover_skills",
    "fetch_skill",
    "fetch_skills",
    "load_skill_bundle",
    "load_skill_bundles",
    "parse_skill_metadata",
    "render_local",
    "setup_agent_environment",
    "skills_to_xml",
    "tools_for",
]


class LocalSkills(FolderStore):
    """The skills of a run directory: `.agents/skills` and `.agents/sys.skills`.

    >>> LocalSkills(".").list().items
    ()
    """


show_public_path(__name__)
