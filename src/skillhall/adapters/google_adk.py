"""Toolset for Google ADK.

```python
from google.adk.agents import LlmAgent

from skillhall import Skills
from skillhall.adapters.google_adk import SkillsToolset

skills = Skills.load("skills")
agent = LlmAgent(name="reporter", model="gemini-2.5-pro", tools=[SkillsToolset(skills)])
```
"""

from skillhall._internal.agents.adapters.google_adk import SkillsToolset
from skillhall._public_path import show_public_path

__all__ = ["SkillsToolset"]

show_public_path(__name__)
