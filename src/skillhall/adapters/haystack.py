"""Toolset and hook for Haystack, and a store for its own skills.

```python
from skillhall import Skills
from skillhall.adapters.haystack import SkillsHook, SkillsToolset

skills = Skills.load("skills")
tools = SkillsToolset(skills)  # for `Agent`
hooks = {"before_llm": [SkillsHook(skills)]}
```
"""

from skillhall._internal.agents.adapters.haystack import (
    SkillhallStore,
    SkillsHook,
    SkillsToolset,
)
from skillhall._public_path import show_public_path

__all__ = ["SkillhallStore", "SkillsHook", "SkillsToolset"]

show_public_path(__name__)
