"""Skills from MCP servers."""
