"""Our client with servers of the official SDK."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillhall._internal.settings import Settings
from skillhall._internal.sources.mcp import client as mcp_client
from skillhall._internal.sources.mcp.servers_file import add_server, parse_server
from skillhall._internal.sources.mcp.source import open_mcp_source
from skillhall.errors import SkillNotFound, SkillsNotServed
from tests.support.mcp_servers import (
    DEADLINE,
    LABEL,
    PDF,
    URI,
    make_contents,
    make_entry,
    make_script,
    plain_skill,
)

PROGRAM = Path(__file__).parents[1] / "support/mcp_sdk_server.py"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    other, contents = plain_skill("docx", "office/")
    skills, served = [make_entry(), other], {**make_contents(), **contents}
    location = tmp_path_factory.mktemp("sdk") / "script.json"
    text = json.dumps(make_script(skills=skills, contents=served))
    location.write_text(text, encoding="utf-8")
    return location


@pytest.fixture(scope="module")
def port(script: Path) -> Iterator[int]:
    """Port of an HTTP server that runs for all tests of this module."""
    command = [sys.executable, "-I", str(PROGRAM), str(script), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield int(running.stdout.readline())
        running.terminate()
        running.wait(DEADLINE)


@pytest.fixture(params=["stdio", "http"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, script: Path, port: int) -> Settings:
    """Settings of a user who added the server."""
    command = [sys.executable, "-I", str(PROGRAM), str(script), "stdio"]
    words = command if request.param == "stdio" else [f"http://127.0.0.1:{port}/mcp"]
    folder = str(tmp_path)
    settings = Settings(folder, folder, data_directory=folder, home=folder)
    add_server(settings, parse_server(LABEL, words))
    return settings


def test_skills_of_sdk_server_are_listed_and_read(settings: Settings) -> None:
    with open_mcp_source(LABEL, settings) as served:
        assert [item.name for item in served.list()] == ["acme:pdf", "acme:docx"]
        bundle = served.bundle(served.find(URI))
        with pytest.raises(SkillNotFound):
            served.find("skill://none/SKILL.md")
    assert {path: file.read() for path, file in bundle.files.items()} == PDF


@pytest.mark.parametrize("settings", ["http"], indirect=True)
def test_sdk_server_with_older_protocol_has_no_skills(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A server that does not know the protocol falls back to the older handshake.
    monkeypatch.setattr(mcp_client, "CURRENT_PROTOCOL", "2099-01-01")
    with pytest.raises(SkillsNotServed), open_mcp_source(LABEL, settings):
        pass
