"""Skills of MCP servers."""
