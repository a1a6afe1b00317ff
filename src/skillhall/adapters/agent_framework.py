"""Context provider for Microsoft Agent Framework, and a source for its own skills.

```python
from skillhall import Skills
from skillhall.adapters.agent_framework import SkillsContextProvider

context_providers = [SkillsContextProvider(Skills.load("skills"))]  # for `Agent`
```
"""

from skillhall._internal.agents.adapters.agent_framework import (
    SkillhallSource,
    SkillsContextProvider,
)
from skillhall._public_path import show_public_path

__all__ = ["SkillhallSource", "SkillsContextProvider"]

show_public_path(__name__)
