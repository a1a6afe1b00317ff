"""What surfaces use of sources: opening one, and the MCP servers that a user named."""

from skillhall._internal.sources.mcp.servers_file import (
    McpServer,
    add_server,
    parse_server,
    read_servers,
    remove_server,
)
from skillhall._internal.sources.mcp.source import ServedSkill, open_served
from skillhall._internal.sources.opener import Opened, open_source, open_upload, other_meaning

__all__ = [
    "McpServer",
    "Opened",
    "ServedSkill",
    "add_server",
    "open_served",
    "open_source",
    "open_upload",
    "other_meaning",
    "parse_server",
    "read_servers",
    "remove_server",
]
