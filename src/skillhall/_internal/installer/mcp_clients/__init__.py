"""Entries for `skillhall mcp` in the configuration files of MCP clients."""
