"""The MCP server: prompts, resources, tools and the skills extension, over stdio and HTTP."""
