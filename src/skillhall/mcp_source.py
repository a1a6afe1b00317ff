"""Skills of an MCP server, read in place and verified against its manifest."""

from skillhall._internal.sources.mcp.source import McpSkill, McpSkillSource, open_mcp_source
from skillhall._public_path import show_public_path

__all__ = ["McpSkill", "McpSkillSource", "open_mcp_source"]

show_public_path(__name__)
