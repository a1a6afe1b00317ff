"""Skills of an MCP server, read in place and verified against the server's manifest."""

from skillhall._internal.sources.mcp.source import McpSkill, McpSkillSource, open_mcp_source

__all__ = ["McpSkill", "McpSkillSource", "open_mcp_source"]
