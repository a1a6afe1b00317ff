"""MCP: prompts, resources, the skills extension and tools, by stdio and by streamable HTTP."""
