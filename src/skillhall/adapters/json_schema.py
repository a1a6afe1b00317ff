"""JSON Schema tools for hand-written loops.

```python
from skillhall import Skills
from skillhall.adapters.json_schema import AgentTools, call_tool, tool_schemas

tools = AgentTools(Skills.load("skills"))  # one for each conversation
print(tool_schemas(tools), call_tool(tools, "load_skill", '{"name": "pdf-tools"}'))
```
"""

from skillhall._internal.agents.adapters.json_schema import call_tool, tool_schemas
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._public_path import show_public_path

__all__ = ["AgentTools", "call_tool", "tool_schemas"]

show_public_path(__name__)
