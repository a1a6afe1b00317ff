"""Skills of an MCP server, read in place and verified against its manifest.

`acme` is the label of a server that `skillhall mcp-servers add` registered.

```python
from skillhall.mcp_source import open_mcp_source

with open_mcp_source("acme") as source:
    skill = source.find("pdf")
    print(source.activate(skill))
    print(source.read(skill, "references/forms.md"))
```
"""

from skillhall._internal.sources.mcp.source import McpSkill, McpSkillSource, open_mcp_source
from skillhall._public_path import show_public_path

__all__ = ["McpSkill", "McpSkillSource", "open_mcp_source"]

show_public_path(__name__)
