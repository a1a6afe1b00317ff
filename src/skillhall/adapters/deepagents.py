"""Backend for deepagents, which lists and reads skills itself.

```python
from deepagents.backends import CompositeBackend, StateBackend

from skillhall import Skills
from skillhall.adapters.deepagents import SkillsBackend

routes = {"/skills/": SkillsBackend(Skills.load("skills"))}
# for `create_deep_agent(model, backend=backend, skills=["/skills/"])`
backend = CompositeBackend(StateBackend(), routes)
```
"""

from skillhall._internal.agents.adapters.deepagents import SkillsBackend
from skillhall._public_path import show_public_path

__all__ = ["SkillsBackend"]

show_public_path(__name__)
