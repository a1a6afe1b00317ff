import pytest

from skillhall._internal.installer.agent_folders import AGENTS
from skillhall._internal.installer.mcp_clients.mcp_client_table import MCP_CLIENTS
from skillhall.errors import ConfigInvalid

OTHER_PROGRAMS = {"claude-desktop", "lm-studio", "vscode"}  # do not read skill folders


def locate(client: str, platform: str, *, is_user: bool = True, **variables: str) -> str:
    return MCP_CLIENTS[client].locate(
        is_user=is_user, home="/user", project="/work", variables=variables, platform=platform
    )


def test_clients_have_the_ids_of_coding_agents() -> None:
    assert set(MCP_CLIENTS) - set(AGENTS) == OTHER_PROGRAMS


@pytest.mark.parametrize(
    ("client", "platform", "path"),
    [
        ("claude-desktop", "linux", "/user/.config/Claude/claude_desktop_config.json"),
        (
            "claude-desktop",
            "darwin",
            "/user/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("claude-code", "darwin", "/user/.claude.json"),
        ("codex", "linux", "/user/.codex/config.toml"),
        ("zed", "darwin", "/user/.config/zed/settings.json"),
    ],
)
def test_user_file_depends_on_the_system(client: str, platform: str, path: str) -> None:
    assert locate(client, platform) == path


def test_variable_of_a_client_moves_its_file() -> None:
    assert locate("claude-code", "linux", CLAUDE_CONFIG_DIR="/c") == "/c/.claude.json"
    assert locate("codex", "linux", CODEX_HOME="/c") == "/c/config.toml"
    assert locate("vscode", "win32", APPDATA="/c") == "/c/Code/User/mcp.json"


@pytest.mark.parametrize(
    ("client", "platform", "is_user"),
    [("windsurf", "linux", False), ("roo", "linux", True), ("vscode", "win32", True)],
)
def test_client_without_such_a_file_is_an_error(client: str, platform: str, is_user: bool) -> None:
    with pytest.raises(ConfigInvalid, match="no configuration file"):
        locate(client, platform, is_user=is_user)


def test_entry_has_the_fields_of_the_client() -> None:
    command = ["skillhall", "mcp", "/s"]
    assert MCP_CLIENTS["cursor"].build_entry(command) == {
        "command": "skillhall",
        "args": ["mcp", "/s"],
    }
    assert MCP_CLIENTS["vscode"].build_entry(command)["type"] == "stdio"
    assert MCP_CLIENTS["github-copilot"].build_entry(command)["tools"] == ["*"]
    assert MCP_CLIENTS["opencode"].build_entry(command)["command"] == command
