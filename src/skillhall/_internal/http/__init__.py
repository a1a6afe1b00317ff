"""HTTP code shared by REST, web and MCP, from authentication to metrics."""
