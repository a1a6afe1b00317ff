"""Functions that surfaces use for sources, including registered MCP servers."""

from skillhall._internal.sources.archive.upload import read_upload
from skillhall._internal.sources.base import OpenedSource
from skillhall._internal.sources.mcp.servers_file import (
    McpServer,
    add_server,
    parse_server,
    read_servers,
    remove_server,
)
from skillhall._internal.sources.mcp.source import McpSkill, open_mcp_source
from skillhall._internal.sources.opener import build_github_hint, open_source

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
