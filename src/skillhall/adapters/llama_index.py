"""Tool spec for LlamaIndex.

```python
from skillhall import Skills
from skillhall.adapters.llama_index import SkillsToolSpec

spec = SkillsToolSpec(Skills.load("skills"))
tools, system_prompt = spec.to_tool_list(), spec.system_prompt()  # for `FunctionAgent`
```
"""

from skillhall._internal.agents.adapters.llama_index import SkillsToolSpec
from skillhall._public_path import show_public_path

__all__ = ["SkillsToolSpec"]

show_public_path(__name__)
