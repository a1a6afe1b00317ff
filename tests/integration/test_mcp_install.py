"""`skillhall mcp install` and `uninstall`, and the entry that a client starts."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skillhall._internal.installer.mcp_clients.mcp_client_table import MCP_CLIENTS, McpClient
from tests.support.project_cli import Cli, make_cli

GUIDE = (Path(__file__).parents[2] / "docs/guides/mcp.md").read_text(encoding="utf-8")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return make_cli(tmp_path, monkeypatch, capsys)


def test_install_shows_the_diff_before_it_asks(cli: Cli) -> None:
    result = cli("mcp", "install", "cursor", typed="n\n")
    assert result.err.index('+    "skillhall": {') < result.err.index("Change ")
    assert not Path(".cursor").exists()


def test_install_and_uninstall_report_what_they_did(cli: Cli) -> None:
    installed = cli("mcp", "install", "cursor", "skills", "--yes", "--json").data
    assert (installed["action"], installed["written"]) == ("add", True)
    assert json.loads(Path(".cursor/mcp.json").read_text(encoding="utf-8")) == {
        "mcpServers": {
            "skillhall": {"command": "skillhall", "args": ["mcp", "${workspaceFolder}/skills"]}
        }
    }
    assert cli("mcp", "install", "cursor", "skills", "--json").data["action"] == "none"
    removed = cli("mcp", "uninstall", "cursor", "--yes", "--json").data
    assert (removed["action"], removed["removesFile"]) == ("remove", True)
    assert not Path(".cursor/mcp.json").exists()


def test_dry_run_writes_nothing(cli: Cli) -> None:
    result = cli("mcp", "install", "claude-desktop", "-n")
    assert '+    "skillhall": {' in result.out
    assert not (Path.home() / ".config").exists()


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("nope",), 2),
        (("cursor", "--name", "a b"), 2),
        (("cursor", "--json"), 2),  # without --yes, the user would have to be asked
        (("windsurf", "--project"), 3),
    ],
)
def test_install_that_cannot_work_is_an_error(cli: Cli, argv: tuple[str, ...], code: int) -> None:
    assert cli("mcp", "install", *argv).code == code


def test_folder_with_the_name_of_a_subcommand_can_be_served(cli: Cli) -> None:
    Path("install").mkdir()
    assert cli("mcp", "--check", "./install").code == 0


def test_installed_entry_starts_a_server(cli: Cli) -> None:
    cli("mcp", "install", "claude-code", "--yes")
    entry = json.loads(Path(".mcp.json").read_text(encoding="utf-8"))["mcpServers"]["skillhall"]
    program = Path(sys.executable).with_name(entry["command"])
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "client", "version": "1"},
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    process = subprocess.run(
        [program, *entry["args"]],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
        timeout=60,
    )
    assert json.loads(process.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "skillhall"


@pytest.mark.parametrize("client", MCP_CLIENTS.values(), ids=MCP_CLIENTS)
def test_help_and_guide_name_every_client_and_its_files(cli: Cli, client: McpClient) -> None:
    help_page = " ".join(cli("mcp", "install", "--help").out.split())
    assert re.search(rf"\b{client.id}[,. ]", help_page)
    [row] = [line for line in GUIDE.splitlines() if line.startswith(f"| `{client.id}` |")]
    assert f"`{client.project_file}`" in row if client.project_file else "| |" in row
    user_file = client.linux_file.rpartition(" or ")[2]
    for variable, folder in (("$XDG_CONFIG_HOME", "~/.config"), ("$CODEX_HOME", "~/.codex")):
        user_file = user_file.replace(variable, folder)
    assert f"`{user_file}`" in row or not user_file
