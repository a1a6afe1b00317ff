"""Agent set-up for the OpenAI Agents SDK.

```python
from agents import Agent

from skillhall import Skills
from skillhall.adapters.openai_agents import with_skills

agent = with_skills(Agent(name="reporter"), Skills.load("skills"))
```
"""

from skillhall._internal.agents.adapters.openai_agents import with_skills
from skillhall._public_path import show_public_path

__all__ = ["with_skills"]

show_public_path(__name__)
