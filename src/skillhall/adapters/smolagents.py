"""Tools for smolagents.

```python
from smolagents import InferenceClientModel, ToolCallingAgent

from skillhall import Skills
from skillhall.adapters.smolagents import AgentTools, skill_tools

tools = AgentTools(Skills.load("skills"))  # one for each agent
agent = ToolCallingAgent(
    tools=skill_tools(tools), model=InferenceClientModel(), instructions=tools.system_prompt()
)
```
"""

from skillhall._internal.agents.adapters.smolagents import SmolagentsSkillTool, skill_tools
from skillhall._public_path import show_public_path
from skillhall.adapters.json_schema import AgentTools

__all__ = ["AgentTools", "SmolagentsSkillTool", "skill_tools"]

show_public_path(__name__)
