"""Options with skills for the Claude Agent SDK.

```python
from claude_agent_sdk import ClaudeAgentOptions

from skillhall import Skills
from skillhall.adapters.claude_agent_sdk import with_skills

options = with_skills(ClaudeAgentOptions(), Skills.load("skills"))  # for `query(options=…)`
```
"""

from skillhall._internal.agents.adapters.claude_agent_sdk import with_skills
from skillhall._public_path import show_public_path

__all__ = ["with_skills"]

show_public_path(__name__)
