"""Middleware for LangChain.

```python
from skillhall import Skills
from skillhall.adapters.langchain import SkillsMiddleware

middleware = [SkillsMiddleware(Skills.load("skills"))]  # for `create_agent`
```
"""

from skillhall._internal.agents.adapters.langchain import SkillsMiddleware
from skillhall._public_path import show_public_path

__all__ = ["SkillsMiddleware"]

show_public_path(__name__)
