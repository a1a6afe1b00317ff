"""Run the scripts of skills in a sandbox that your program chooses.

Nothing that comes with a skill runs unless you pass a runner.

```python
from skillhall import AgentSkills
from skillhall.errors import SandboxUnavailable
from skillhall.scripts import BubblewrapRunner

try:
    skills = AgentSkills.of("skills", script_runner=BubblewrapRunner())
except SandboxUnavailable as error:
    print(error)
```
"""

from skillhall._internal.agents.scripts.bubblewrap_runner import BubblewrapRunner
from skillhall._internal.agents.scripts.script_runner import (
    ProcessResult,
    ScriptCall,
    ScriptLimits,
    ScriptRunner,
)
from skillhall._public_path import show_public_path

__all__ = ["BubblewrapRunner", "ProcessResult", "ScriptCall", "ScriptLimits", "ScriptRunner"]

show_public_path(__name__)
