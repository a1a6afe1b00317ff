"""The early answer to `initialize` is the SDK's, and only plain requests get it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from skillhall._internal.mcp.handshake import HANDSHAKE_VERSIONS, build_response
from tests.support.mcp_clients import DEADLINE
from tests.support.trees import write_skill

CLIENT = {"name": "test", "version": "1"}


def initialize(number: int | str = 1, **changes: object) -> dict[str, Any]:
    params: dict[str, object] = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": CLIENT,
    }
    params |= changes
    return {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params}


def talk(folder: Path, *messages: object, cut: int | None = None) -> list[dict[str, Any]]:
    """Send lines to `skillhall mcp` and return all that it answers."""
    data = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
    command = [sys.executable, "-m", "skillhall", "mcp", str(folder), "--no-index"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin
        assert process.stdout
        os.write(process.stdin.fileno(), data[:cut])
        if cut is not None:
            os.write(process.stdin.fileno(), data[cut:])
        expected = sum("id" in message for message in messages if isinstance(message, dict))
        answers = [json.loads(process.stdout.readline()) for _ in range(expected)]
        process.stdin.close()
        rest = process.stdout.read()
        process.wait(timeout=DEADLINE)
    assert rest == b""
    return answers


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path / "skills" / "pdf")
    return tmp_path / "skills"


def test_versions_are_those_of_the_sdk() -> None:
    assert HANDSHAKE_VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS


@pytest.mark.parametrize("version", [HANDSHAKE_VERSIONS[0], "1999-01-01"])
def test_early_answer_is_the_answer_of_the_sdk(skills: Path, version: str) -> None:
    # The title of an icon is not plain, so the SDK answers the second client.
    icons = {**CLIENT, "icons": [{"src": "https://example.com/icon.png"}]}
    [early] = talk(skills, initialize("a", protocolVersion=version))
    [late] = talk(skills, initialize("a", protocolVersion=version, clientInfo=icons))
    assert early == late == json.loads(build_response("a", version))


def test_requests_that_arrive_early_are_answered_once_and_in_order(skills: Path) -> None:
    answers = talk(
        skills,
        initialize(7),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 8, "method": "prompts/list"},
    )
    assert [answer["id"] for answer in answers] == [7, 8]
    assert [prompt["name"] for prompt in answers[1]["result"]["prompts"]] == ["pdf"]


def test_invalid_parameters_get_the_error_of_the_sdk(skills: Path) -> None:
    [answer] = talk(skills, initialize(capabilities={"roots": 5}))
    assert answer["error"]["code"] == -32602


def test_another_first_request_is_left_to_the_sdk(skills: Path) -> None:
    [answer] = talk(skills, {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_the_first_line_may_be_longer_than_what_is_read_early(skills: Path) -> None:
    [answer] = talk(skills, initialize(clientInfo={**CLIENT, "title": "x" * 9000}))
    assert answer["result"]["serverInfo"]["name"] == "skillhall"


def test_answering_imports_no_sdk() -> None:
    code = "import sys, skillhall._internal.mcp.handshake; print('mcp' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout == b"False\n"
