"""Tools for the Anthropic SDK.

```python
from skillhall import Skills
from skillhall.adapters.anthropic import AgentTools, skill_tools

tools = AgentTools(Skills.load("skills"))  # one for each conversation
print(tools.system_prompt(), [tool.to_dict() for tool in skill_tools(tools)])
```
"""

from skillhall._internal.agents.adapters.anthropic import AnthropicSkillTool, skill_tools
from skillhall._public_path import show_public_path
from skillhall.adapters.json_schema import AgentTools

__all__ = ["AgentTools", "AnthropicSkillTool", "skill_tools"]

show_public_path(__name__)
