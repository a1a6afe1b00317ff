"""`skillhall mcp` as a process, over stdin and stdout."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.support.broken_skills import BROKEN_SKILLS
from tests.support.mcp_clients import (
    DEADLINE,
    ERAS,
    MODERN,
    VERSIONS,
    list_all,
    open_stdio,
    read_error_data,
    run_client,
    send_request,
    stdio_command,
)
from tests.support.skills import make_skill
from tests.support.trees import write_skill

COMMAND = (sys.executable, "-m", "skillhall", "mcp")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize("era", ERAS)
def test_thousand_skills_are_listed_in_pages(tmp_path: Path, era: str) -> None:
    names = [f"s{number:04}" for number in range(1000)]
    for name in names:
        write_skill(tmp_path / "skills" / name)

    async def everything(client: Client) -> None:
        assert client.protocol_version == VERSIONS[era]
        rows = await list_all(client, "resources/list", "resources")
        assert [row["name"] for row in rows] == names
        prompts = await list_all(client, "prompts/list", "prompts")
        assert [row["name"] for row in prompts] == names
        if era == MODERN:
            skills = await list_all(client, "skills/list", "skills")
            assert [row["frontmatter"]["name"] for row in skills] == names
            got = await send_request(client, "skills/get", uri="skill://s0999/SKILL.md")
            assert got["skill"]["_meta"].pop("skillhall/trust")
            assert got["skill"] == skills[-1]
            inside = await send_request(client, "resources/directory/read", uri="skill://s0999")
            assert (inside["ttlMs"], inside["cacheScope"]) == (5_000, "private")
        unknown = "skill://unknown/SKILL.md"
        data = await read_error_data(client.read_resource(unknown))
        assert data == {"code": "not_found", "uri": unknown}
        assert len((await client.list_tools()).tools) == 4
        loaded = await client.call_tool("load_skill", {"name": "s0500"})
        assert "Do it." in str(loaded.content)
        assert (await client.get_prompt("s0001")).messages
        assert (await client.read_resource("skill://s0001/SKILL.md")).contents

    command = stdio_command(tmp_path / "skills", "--no-index")
    run_client(open_stdio(command, tmp_path / "log"), everything, era)
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert log == "serving 1000 skills over stdin and stdout\n"


def test_change_on_disk_is_notified(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "one")

    async def listen(client: Client) -> str:
        async with client.listen(tools_list_changed=True) as stream:
            make_skill(tmp_path / "skills", "two")
            async for event in stream:
                return type(event).__name__
        return ""

    command = stdio_command(tmp_path / "skills")
    assert run_client(open_stdio(command, tmp_path / "log"), listen) == "ToolsListChanged"


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command with pipes and end it afterwards."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE)


def read_response(process: subprocess.Popen[bytes], number: int, *lines: bytes) -> Any:  # noqa: ANN401
    """Send lines and return the response to the last one. All of stdout must be JSON-RPC."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"".join(line + b"\n" for line in lines))
    process.stdin.flush()
    while True:
        response = json.loads(process.stdout.readline())
        assert response["jsonrpc"] == "2.0"
        if response.get("id") == number:
            return response


def request(method: str, number: int = 1, **params: object) -> bytes:
    params = {**params, "_meta": META}
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode()


BAD_LINES = (
    b"{",
    b"\xff\xfe\0",
    b"[]",
    b"null",
    b'"text"',
    b"",
    b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
    b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
    b"[" * 100_000,
    request("no/such/method"),
    request("skills/get"),
    request("skills/get", uri=5),
    request("resources/read", uri="skill://x/\ud800"),
    request("tools/call", name="load_skill", arguments="x"),
    request("prompts/get", name="x", arguments={"a": 1}),
    request("initialize"),
    b'{"jsonrpc": "2.0", "method": "notifications/nothing"}',
)


def test_stdout_contains_only_protocol_messages(tmp_path: Path) -> None:
    make_skill(tmp_path, "one")
    with started(tmp_path) as process:
        read_response(process, 99, request("server/discover", 99))
        for number, bad in enumerate(BAD_LINES, 100):
            assert "result" in read_response(process, number, bad, request("tools/list", number))
        assert end(process) == 0


def test_findings_do_not_reach_stdout(tmp_path: Path) -> None:
    root = tmp_path / "skills"
    root.mkdir()
    for broken in BROKEN_SKILLS:
        broken.make(root)
    make_skill(root, "good")
    with started(tmp_path / "missing", root) as process:
        response = read_response(process, 1, request("skills/list"))
        for method in ("resources/list", "prompts/list"):
            assert "result" in read_response(process, 2, request(method, 2))
        assert end(process) == 0
    uris = [skill["uri"] for skill in response["result"]["skills"]]
    assert "skill://good/SKILL.md" in uris


def end(process: subprocess.Popen[bytes]) -> int:
    """Close stdin and return the exit code; the rest of the output must be empty."""
    out, _ = process.communicate(timeout=DEADLINE)
    assert out == b""
    return process.returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_server(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path) as process:
        read_response(process, 1, request("tools/list"))
        process.send_signal(number)
        assert process.wait(DEADLINE) == -number


def test_closed_stdout_stops_the_server(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        read_response(process, 1, request("tools/list"))
        assert process.stdin
        assert process.stdout
        process.stdout.close()
        with suppress(BrokenPipeError):  # it may have stopped already
            process.stdin.write(request("tools/list") + b"\n")
            process.stdin.flush()
        assert process.wait(DEADLINE) == 0
        assert process.stderr
        assert b"Traceback" not in process.stderr.read()


PARENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdin.write(sys.stdin.buffer.readline())
child.stdin.flush()
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


def test_killed_client_leaves_no_server_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, *COMMAND, str(tmp_path)]
    pipe = subprocess.PIPE
    parent = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        assert parent.stdin
        assert parent.stdout
        parent.stdin.write(request("tools/list") + b"\n")
        parent.stdin.flush()
        assert int(parent.stdout.readline())
    finally:
        parent.kill()
        # The child shares stderr, so it reaches its end only when both processes have exited.
        parent.communicate(timeout=DEADLINE)
