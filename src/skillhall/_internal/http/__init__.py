"""HTTP code shared by REST, web and MCP: requests, responses, authentication, logs, metrics."""
