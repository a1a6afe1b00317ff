"""Configured MCP servers: the file that lists them, and connections to them.

The file belongs to the user. Projects cannot add servers, so that no command from a repository is
ever started. Tokens are not stored, only the names of their environment variables.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.hints import find_close_names
from skillhall._internal.net.addresses import build_address_policy
from skillhall._internal.net.url import WebUrl
from skillhall._internal.settings import build_environment, read_secret_variable
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.sources.mcp.client import McpSkillClient, open_skill_client
from skillhall._internal.sources.mcp.http_transport import HttpTransport
from skillhall._internal.sources.mcp.mcp_ref import check_mcp_label
from skillhall._internal.sources.mcp.stdio_transport import StdioTransport
from skillhall._internal.sources.mcp.transport import DEFAULT_MCP_TIMEOUTS, McpTimeouts
from skillhall._internal.strict_json import InvalidJson, parse_json, render_json
from skillhall.errors import (
    ConfigInvalid,
    Conflict,
    NotAFile,
    SkillFileNotFound,
    SourceRejected,
    TooLarge,
    UnknownMcpServer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.mcp.transport import McpTransport

SERVERS_FILE: Final = "mcp-servers.json"  # in the data folder
VERSION: Final = 1
MAX_SERVERS_FILE: Final = 1024 * 1024  # bytes
_CACHE_FOLDER: Final = "mcp"  # in the cache folder: a folder for each server
_VARIABLE_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_URL_PATTERN = re.compile(r"https?://", re.IGNORECASE)
_FIX_HINT = f"correct {SERVERS_FILE} in the data folder, or remove it and add the servers again"


class McpServer(NamedTuple):
    """Configured server: a URL, or a command with its arguments."""

    label: str
    url: str = ""
    command: tuple[str, ...] = ()
    token_variable: str = ""  # the environment variable with the token for the URL
    variables: tuple[str, ...] = ()  # environment variables for the command, besides the essentials

    @property
    def endpoint(self) -> str:
        """URL or command line, for display."""
        return self.url or " ".join(self.command)


def parse_server(
    label: str,
    arguments: Sequence[str],
    token_variable: str = "",
    variables: Sequence[str] = (),
    base_folder: str = "",
) -> McpServer:
    """Build a server from a URL, or from a command and its arguments.

    A relative path to the command starts at `base_folder`. Raises: SourceRejected, ConfigInvalid.
    """
    if len(arguments) == 1 and _URL_PATTERN.match(arguments[0]):
        if variables:
            raise ConfigInvalid(
                label,
                "environment variables can be set only for a server with a command, not with a URL",
            )
        return _check_server(McpServer(label, url=arguments[0], token_variable=token_variable))
    if token_variable:
        raise ConfigInvalid(
            label, "a token can be set only for a URL; a command gets it as an environment variable"
        )
    command = tuple(arguments)
    if command and os.path.dirname(command[0]):
        command = (os.path.normpath(os.path.join(base_folder, command[0])), *command[1:])
    return _check_server(McpServer(label, command=command, variables=tuple(variables)))


def _check_server(server: McpServer) -> McpServer:
    """Return the server if it is valid. Raises: SourceRejected, ConfigInvalid."""
    check_mcp_label(server.label)
    for name in (*server.variables, server.token_variable):
        if name and not _VARIABLE_PATTERN.fullmatch(name):
            raise ConfigInvalid(name[:100], "it is not a valid environment variable name")
    if server.url:
        url = WebUrl.parse(server.url)
        if url.fragment or url.query:
            problem = "the URL of a server must not have a query or fragment"
            raise SourceRejected("url", server.url, problem)
        return server._replace(url=url.without_query)
    if not server.command or not server.command[0] or any("\0" in word for word in server.command):
        raise ConfigInvalid(server.label, "it has neither a URL nor a valid command")
    return server


def read_servers(settings: Settings) -> dict[str, McpServer]:
    """Return all servers by label. Raises: ConfigInvalid, OSError."""
    try:
        with open_root(settings.data_directory) as root:
            data = read_below(root, RelativePath.parse(SERVERS_FILE), MAX_SERVERS_FILE)
    except (FileNotFoundError, SkillFileNotFound):
        return {}
    except (NotAFile, TooLarge):
        problem = f"it is not a regular file of at most {MAX_SERVERS_FILE} bytes"
        raise ConfigInvalid(SERVERS_FILE, problem, _FIX_HINT) from None
    try:
        value = parse_json(data, unique_keys=True)
    except InvalidJson as error:
        raise ConfigInvalid(SERVERS_FILE, str(error), _FIX_HINT) from None
    fields = value if isinstance(value, dict) else {}
    servers = fields.get("servers")
    if not isinstance(servers, dict) or fields.get("version") != VERSION:
        raise ConfigInvalid(
            SERVERS_FILE, f"it has no 'servers', or its 'version' is not {VERSION}", _FIX_HINT
        )
    return {label: _parse_server_entry(label, entry) for label, entry in servers.items()}


def find_server(settings: Settings, label: str) -> McpServer:
    """Return the server with this label.

    Raises: UnknownMcpServer, ConfigInvalid, OSError.
    """
    servers = read_servers(settings)
    if label not in servers:
        raise UnknownMcpServer(label, find_close_names(label, servers))
    return servers[label]


def add_server(settings: Settings, server: McpServer, *, overwrite: bool = False) -> None:
    """Add a server; if it replaces a different one, clear the cache.

    Raises: Conflict, ConfigInvalid, OSError.
    """
    with _edit_servers(settings) as servers:
        known = servers.get(server.label)
        if known is not None and known != server and not overwrite:
            raise Conflict(server.label)
        if known != server:
            clear_cache(settings, server.label)
        servers[server.label] = server


def remove_server(settings: Settings, label: str) -> None:
    """Remove a server and its cache.

    Raises: UnknownMcpServer, ConfigInvalid, OSError.
    """
    with _edit_servers(settings) as servers:
        if label not in servers:
            raise UnknownMcpServer(label, find_close_names(label, servers))
        clear_cache(settings, label)
        del servers[label]


@contextmanager
def _edit_servers(settings: Settings) -> Iterator[dict[str, McpServer]]:
    """Lock the file, yield the servers, and write changes at the end."""
    os.makedirs(settings.data_directory, exist_ok=True)
    with WritableFolder(settings.data_directory) as folder, folder.lock():
        before = read_servers(settings)
        servers = dict(before)
        yield servers
        if servers != before:
            fields = {label: _serialize_server(server) for label, server in servers.items()}
            data = render_json({"version": VERSION, "servers": fields}, sort_keys=True) + b"\n"
            folder.write_file(SERVERS_FILE, data, 0o600)


def _serialize_server(server: McpServer) -> dict[str, object]:
    fields: dict[str, object] = {
        "url": server.url,
        "command": list(server.command),
        "tokenVariable": server.token_variable,
        "variables": list(server.variables),
    }
    return {name: value for name, value in fields.items() if value}


def _parse_server_entry(label: str, value: object) -> McpServer:
    fields = value if isinstance(value, dict) else {}
    url, variable = fields.get("url", ""), fields.get("tokenVariable", "")
    command = _parse_strings(fields.get("command", []))
    variables = _parse_strings(fields.get("variables", []))
    is_valid = isinstance(url, str) and isinstance(variable, str)
    if not is_valid or command is None or variables is None or bool(url) is bool(command):
        raise ConfigInvalid(SERVERS_FILE, f"{label[:100]!r} is not a valid server", _FIX_HINT)
    try:
        return _check_server(McpServer(label, url, tuple(command), variable, tuple(variables)))
    except SourceRejected as error:
        problem = f"{label[:100]!r} is rejected: {error.problem}"
        raise ConfigInvalid(SERVERS_FILE, problem, _FIX_HINT) from None


def _parse_strings(value: object) -> list[str] | None:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    return None


@contextmanager
def connect(
    settings: Settings, server: McpServer, timing: McpTimeouts = DEFAULT_MCP_TIMEOUTS
) -> Iterator[McpSkillClient]:
    """Connect to a server or start its command, for the duration of a `with` block.

    Raises: SkillsNotServed, SourceRejected, ConfigInvalid, and errors of the transport.
    """
    transport: McpTransport
    if server.command:
        environment = build_environment(server.variables)
        # Not in the working directory: some programs load code from the folder they start in.
        transport = StdioTransport(server.label, server.command, environment, settings.home)
    else:
        policy = build_address_policy(settings.allowed_networks, settings.proxies)
        variable = server.token_variable
        token = read_secret_variable(variable) if variable else None
        if variable and token is None:
            hint = f"set it to the token for {server.label}"
            raise ConfigInvalid(variable, "it is not set", hint)
        transport = HttpTransport.for_url(WebUrl.parse(server.url), policy, token, variable)
    with open_skill_client(transport, timing) as client:
        yield client


def cache_folder(settings: Settings, label: str) -> str:
    """Return the cache folder for verified files of a server."""
    return os.path.join(settings.cache_directory, _CACHE_FOLDER, label)


def clear_cache(settings: Settings, label: str) -> None:
    """Remove the cached files of a server. Raises: OSError."""
    with (
        suppress(FileNotFoundError),
        WritableFolder(os.path.dirname(cache_folder(settings, label))) as folder,
    ):
        folder.remove(label)
