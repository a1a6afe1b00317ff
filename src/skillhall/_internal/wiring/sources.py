"""The source functions that surfaces use, including registered MCP servers."""

from skillhall._internal.sources.mcp.servers_file import (
    McpServer,
    add_server,
    parse_server,
    read_servers,
    remove_server,
)
from skillhall._internal.sources.mcp.source import McpSkill, open_mcp_source
from skillhall._internal.sources.opener import (
    OpenedSource,
    build_github_hint,
    open_source,
    read_upload,
)

__all__ = [
    "McpServer",
    "McpSkill",
    "OpenedSource",
    "add_server",
    "build_github_hint",
    "open_mcp_source",
    "open_source",
    "parse_server",
    "read_servers",
    "read_upload",
    "remove_server",
]
