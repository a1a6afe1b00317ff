"""The MCP servers that a person gave labels: which there are, and a line to each.

They stand in one file of the person's own. No project can name one, so no command of a stranger is
ever started. A token is named by the variable that holds it and never written down.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.net.addresses import build_address_policy
from skillhall._internal.net.url import WebUrl
from skillhall._internal.settings import build_environment, read_secret_variable
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.sources.mcp.client import McpSkillClient, open_skill_client
from skillhall._internal.sources.mcp.http_transport import HttpTransport
from skillhall._internal.sources.mcp.stdio_transport import StdioTransport
from skillhall._internal.sources.mcp.transport import DEFAULT_MCP_TIMEOUTS, McpTimeouts
from skillhall._internal.sources.ref import check_mcp_label
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
_FIX_HINT = f"correct {SERVERS_FILE} in the data folder, or remove it and add the servers anew"


class McpServer(NamedTuple):
    """One server: an address, or a command with its arguments."""

    label: str
    url: str = ""
    command: tuple[str, ...] = ()
    token_variable: str = ""  # holds what is sent to the address
    variables: tuple[str, ...] = ()  # that the command gets to see, besides the essentials

    @property
    def endpoint(self) -> str:
        """Where it is, for people."""
        return self.url or " ".join(self.command)


def parse_server(
    label: str,
    arguments: Sequence[str],
    token_variable: str = "",
    variables: Sequence[str] = (),
    base_folder: str = "",
) -> McpServer:
    """The server that words name: one http address, or a command, found from `base`.

    Raises: SourceRejected, ConfigInvalid.
    """
    if len(arguments) == 1 and _URL_PATTERN.match(arguments[0]):
        if variables:
            raise ConfigInvalid(label, "only a command gets to see variables")
        return _check_server(McpServer(label, url=arguments[0], token_variable=token_variable))
    if token_variable:
        raise ConfigInvalid(label, "only an address is sent a token; a command sees variables")
    has_folder = bool(arguments) and os.path.dirname(arguments[0]) != ""
    program = (
        [os.path.normpath(os.path.join(base_folder, arguments[0]))] if has_folder else arguments[:1]
    )
    command = (*program, *arguments[1:])
    return _check_server(McpServer(label, command=command, variables=tuple(variables)))


def _check_server(server: McpServer) -> McpServer:
    """The server, if all of it is as it should be. Raises: SourceRejected, ConfigInvalid."""
    check_mcp_label(server.label)
    for name in (*server.variables, server.token_variable):
        if name and not _VARIABLE_PATTERN.fullmatch(name):
            raise ConfigInvalid(name[:100], "it is no name of a variable")
    if server.url:
        return server._replace(url=_check_url(server.url))
    if not server.command or not server.command[0] or any("\0" in one for one in server.command):
        raise ConfigInvalid(server.label, "it has neither an address nor a command")
    return server


def _check_url(text: str) -> str:
    url = WebUrl.parse(text)
    if url.fragment or url.query:
        raise SourceRejected("url", text, "a server's address has no query and no fragment")
    return url.without_query


# The file


def read_servers(settings: Settings) -> dict[str, McpServer]:
    """Every server, by its label. Raises: ConfigInvalid, OSError."""
    try:
        root = open_root(settings.data_directory)
    except FileNotFoundError:
        return {}
    try:
        data = read_below(root, RelativePath.parse(SERVERS_FILE), MAX_SERVERS_FILE)
    except SkillFileNotFound:
        return {}
    except (NotAFile, TooLarge):
        raise ConfigInvalid(
            SERVERS_FILE, "it is not a regular file of ordinary size", _FIX_HINT
        ) from None
    finally:
        root.close()
    return _parse_servers(data)


def find_server(settings: Settings, label: str) -> McpServer:
    """The server of that label. Raises: UnknownMcpServer, ConfigInvalid, OSError."""
    servers = read_servers(settings)
    if label not in servers:
        raise UnknownMcpServer(label, get_close_matches(label, servers))
    return servers[label]


def add_server(settings: Settings, server: McpServer, *, overwrite: bool = False) -> None:
    """Note a server; what was kept of another one under its label is forgotten.

    Raises: Conflict, ConfigInvalid, OSError.
    """
    with _edit_servers(settings) as servers:
        known = servers.get(server.label)
        if known is not None and known != server and not overwrite:
            raise Conflict(server.label, "take another label, or replace it with --overwrite")
        if known != server:
            clear_cache(settings, server.label)
        servers[server.label] = server


def remove_server(settings: Settings, label: str) -> None:
    """Forget a server and everything that was kept of it.

    Raises: UnknownMcpServer, ConfigInvalid, OSError.
    """
    with _edit_servers(settings) as servers:
        if label not in servers:
            raise UnknownMcpServer(label, get_close_matches(label, servers))
        clear_cache(settings, label)
        del servers[label]


@contextmanager
def _edit_servers(settings: Settings) -> Iterator[dict[str, McpServer]]:
    """The servers, kept from other processes and written when the block ends well."""
    os.makedirs(settings.data_directory, exist_ok=True)
    with WritableFolder(settings.data_directory) as folder, folder.lock():
        before = read_servers(settings)
        servers = dict(before)
        yield servers
        if servers != before:
            fields = {label: _serialize_server(one) for label, one in servers.items()}
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


def _parse_servers(data: bytes) -> dict[str, McpServer]:
    try:
        value = parse_json(data, unique_keys=True)
    except InvalidJson as error:
        raise ConfigInvalid(SERVERS_FILE, str(error), _FIX_HINT) from None
    fields = value if isinstance(value, dict) else {}
    servers = fields.get("servers")
    if not isinstance(servers, dict) or fields.get("version") != VERSION:
        raise ConfigInvalid(SERVERS_FILE, f"it holds no servers of version {VERSION}", _FIX_HINT)
    return {label: _parse_server_entry(label, fields) for label, fields in servers.items()}


def _parse_server_entry(label: str, value: object) -> McpServer:
    fields = value if isinstance(value, dict) else {}
    url, variable = fields.get("url", ""), fields.get("tokenVariable", "")
    command, variables = (
        _parse_strings(fields.get("command", [])),
        _parse_strings(fields.get("variables", [])),
    )
    is_whole = isinstance(url, str) and isinstance(variable, str)
    if not is_whole or command is None or variables is None or bool(url) is bool(command):
        raise ConfigInvalid(SERVERS_FILE, f"{label[:100]!r} is no server", _FIX_HINT)
    try:
        return _check_server(McpServer(label, url, tuple(command), variable, tuple(variables)))
    except SourceRejected as error:
        raise ConfigInvalid(
            SERVERS_FILE, f"{label[:100]!r} is refused: {error.problem}", _FIX_HINT
        ) from None


def _parse_strings(value: object) -> list[str] | None:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    return None


# Lines


@contextmanager
def connect(
    settings: Settings, server: McpServer, timing: McpTimeouts = DEFAULT_MCP_TIMEOUTS
) -> Iterator[McpSkillClient]:
    """A server that answers, for as long as the block lasts. A command is started for it.

    Raises: SkillsNotServed, SourceRejected, ConfigInvalid, and what a `Line` raises.
    """
    with open_skill_client(_open_transport(settings, server), timing) as found:
        yield found


def _open_transport(settings: Settings, server: McpServer) -> McpTransport:
    if server.command:
        environment = build_environment(server.variables)
        # Not where the person stands: programs load code from the folder that they start in.
        return StdioTransport(server.label, server.command, environment, settings.home)
    url = WebUrl.parse(server.url)
    policy = build_address_policy(settings.allowed_networks)
    variable = server.token_variable
    token = read_secret_variable(variable) if variable else None
    if variable and token is None:
        raise ConfigInvalid(variable, "it is not set", f"put the token of {server.label} into it")
    return HttpTransport.for_url(url, policy, token, variable)


# What is kept


def cache_folder(settings: Settings, label: str) -> str:
    """Where verified files of a server are kept: apart from every folder of skills."""
    return os.path.join(settings.cache_directory, _CACHE_FOLDER, label)


def clear_cache(settings: Settings, label: str) -> None:
    """Remove what was kept of a server. Raises: OSError."""
    with (
        suppress(FileNotFoundError),
        WritableFolder(os.path.dirname(cache_folder(settings, label))) as folder,
    ):
        folder.remove(label)
