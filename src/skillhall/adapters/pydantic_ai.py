"""Toolset for Pydantic AI.

```python
from pydantic_ai import Agent

from skillhall import Skills
from skillhall.adapters.pydantic_ai import SkillsToolset

agent = Agent("openai-chat:gpt-5", toolsets=[SkillsToolset(Skills.load("skills"))])
```
"""

from skillhall._internal.agents.adapters.pydantic_ai import SkillsToolset
from skillhall._public_path import show_public_path

__all__ = ["SkillsToolset"]

show_public_path(__name__)
