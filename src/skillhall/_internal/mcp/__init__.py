"""The MCP server, over stdio and HTTP: prompts, resources, tools and skills."""
