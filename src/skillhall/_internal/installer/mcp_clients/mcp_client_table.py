"""Supported MCP clients: their configuration files and the form of an entry."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.installer.agent_folders import resolve_folder
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# One row for each client: id, label, the key of the servers, the form of an entry, the file in a
# project, and the user's file on Linux, macOS and Windows. "=" is the file on Linux, "-" is none.
# Of two files separated by " or ", the first is used if its variable is set. Paths are written as
# in `agent_folders`, and the ids are the same for programs in both tables.
_CLIENTS = """
amp | Amp | amp.mcpServers | plain | .amp/settings.json
  | $XDG_CONFIG_HOME/amp/settings.json | ~/.config/amp/settings.json | ~/.config/amp/settings.json
claude-code | Claude Code | mcpServers | stdio | .mcp.json
  | $CLAUDE_CONFIG_DIR/.claude.json or ~/.claude.json | = | =
claude-desktop | Claude Desktop | mcpServers | plain | -
  | $XDG_CONFIG_HOME/Claude/claude_desktop_config.json
  | ~/Library/Application Support/Claude/claude_desktop_config.json
  | $APPDATA/Claude/claude_desktop_config.json
codex | Codex | mcp_servers | toml | .codex/config.toml | $CODEX_HOME/config.toml | = | =
crush | Crush | mcp | stdio | crush.json | ~/.config/crush/crush.json | = | -
cursor | Cursor | mcpServers | plain | .cursor/mcp.json | ~/.cursor/mcp.json | = | =
droid | Droid | mcpServers | stdio | .factory/mcp.json | ~/.factory/mcp.json | = | =
gemini-cli | Gemini CLI | mcpServers | plain | .gemini/settings.json
  | ~/.gemini/settings.json | = | =
github-copilot | GitHub Copilot CLI | mcpServers | copilot | .mcp.json
  | ~/.copilot/mcp-config.json | = | =
junie | Junie | mcpServers | plain | .junie/mcp/mcp.json | ~/.junie/mcp/mcp.json | = | =
kiro-cli | Kiro CLI | mcpServers | plain | .kiro/settings/mcp.json
  | ~/.kiro/settings/mcp.json | = | =
lm-studio | LM Studio | mcpServers | plain | - | ~/.lmstudio/mcp.json | = | =
opencode | OpenCode | mcp | opencode | opencode.json
  | $XDG_CONFIG_HOME/opencode/opencode.json | = | =
qwen-code | Qwen Code | mcpServers | plain | .qwen/settings.json | ~/.qwen/settings.json | = | =
roo | Roo Code | mcpServers | plain | .roo/mcp.json | - | - | -
vscode | VS Code | servers | stdio | .vscode/mcp.json
  | $XDG_CONFIG_HOME/Code/User/mcp.json | ~/Library/Application Support/Code/User/mcp.json
  | $APPDATA/Code/User/mcp.json
windsurf | Windsurf | mcpServers | plain | - | ~/.codeium/windsurf/mcp_config.json | = | =
zed | Zed | context_servers | plain | .zed/settings.json
  | $XDG_CONFIG_HOME/zed/settings.json | ~/.config/zed/settings.json | $APPDATA/Zed/settings.json
"""
_WORKSPACE_VARIABLES: Final = MappingProxyType(
    {"cursor": "${workspaceFolder}/", "vscode": "${workspaceFolder}/"}
)


class EntryForm(StrEnum):
    """Fields of an entry."""

    PLAIN = "plain"  # command and args
    STDIO = "stdio"  # with "type": "stdio"
    COPILOT = "copilot"  # with a type and the tools
    OPENCODE = "opencode"  # one list for the command and its arguments
    TOML = "toml"  # command and args, in TOML


class McpClient(NamedTuple):
    """MCP client and its configuration files."""

    id: str
    label: str
    key: str  # of the object that contains the servers
    form: EntryForm
    project_file: str  # "" if it has none
    linux_file: str
    macos_file: str
    windows_file: str

    @property
    def workspace(self) -> str:
        """The start of a path in the project: "./", or a variable of the client."""
        return _WORKSPACE_VARIABLES.get(self.id, "./")

    def build_entry(self, command: Sequence[str]) -> dict[str, object]:
        """Return the entry that starts this command."""
        program, *arguments = command
        if self.form is EntryForm.OPENCODE:
            return {"type": "local", "command": [*command], "enabled": True}
        entry: dict[str, object] = {"command": program, "args": arguments}
        if self.form is EntryForm.STDIO:
            return {"type": "stdio", **entry}
        return (
            {"type": "local", **entry, "tools": ["*"]} if self.form is EntryForm.COPILOT else entry
        )

    def locate(
        self, *, is_user: bool, home: str, project: str, variables: Mapping[str, str], platform: str
    ) -> str:
        """Return the path of the file, for a `sys.platform`. Raises: ConfigInvalid."""
        user_file = {"darwin": self.macos_file, "win32": self.windows_file}.get(
            platform, self.linux_file
        )
        cells = (user_file if is_user else self.project_file).split(" or ")
        for index, cell in enumerate(cells):
            variable = cell.partition("/")[0].removeprefix("$")
            if index == len(cells) - 1 or variables.get(variable, "").strip():
                path = resolve_folder(cell, home, project, variables) if cell else None
                if path is not None:
                    return path
        if is_user:
            problem, hint = "it has no configuration file in the home folder here", "use --project"
        else:
            problem, hint = "it has no configuration file in projects", "use --global"
        raise ConfigInvalid(self.id, problem, hint)


def _parse_clients() -> Iterator[McpClient]:
    for row in _CLIENTS.strip().replace("\n  ", " ").splitlines():
        name, label, key, form, *files = (cell.strip() for cell in row.split("|"))
        project, linux, macos, windows = ("" if file == "-" else file for file in files)
        macos, windows = (linux if file == "=" else file for file in (macos, windows))
        yield McpClient(name, label, key, EntryForm(form), project, linux, macos, windows)


MCP_CLIENTS: Final[Mapping[str, McpClient]] = MappingProxyType(
    {client.id: client for client in _parse_clients()}
)
