"""MCP at /mcp of a running server, with authentication."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from skillhall._internal.asgi import Services
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall.errors import ConfigInvalid
from tests.support.mcp_clients import (
    DEADLINE,
    ERAS,
    HANDSHAKE,
    MODERN,
    VERSIONS,
    ClientAction,
    list_all,
    read_error_data,
    run_http_client,
    send_request,
)
from tests.support.prompt_services import MemoryPromptService, make_prompt
from tests.support.servers import (
    TOKEN,
    MemoryTokens,
    RunningServer,
    make_settings,
    make_token_settings,
    run_server,
)
from tests.support.skills import make_skill
from tests.support.trees import write_skill

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@contextmanager
def serving(
    folder: Path, settings: Settings | None = None, tokens: MemoryTokens | None = None
) -> Iterator[RunningServer]:
    """A server with the skills of a run directory and one prompt."""
    chosen = settings or make_settings()
    prompt_service = MemoryPromptService([make_prompt("greet")])
    collection = Collection(FolderStore(folder), chosen)
    services = Services(prompt_service, collection, accepted_tokens=tokens)
    with run_server(settings=chosen, services=services) as server:
        yield server


def ask(server: RunningServer, action: ClientAction[Any], era: str = MODERN) -> Any:  # noqa: ANN401 - the action's
    """Run a client against the server."""
    return run_http_client(server.port, action, server.headers, era)


def post(
    server: RunningServer, message: object = INITIALIZE, headers: Mapping[str, str] | None = None
) -> Any:  # noqa: ANN401 - an answer
    return server.request("POST", "/mcp", message, {**ACCEPT, **(headers or {})})


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("stateless", [False, True])
def test_thousand_skills_are_listed_in_pages(tmp_path: Path, era: str, *, stateless: bool) -> None:
    names = [f"s{number:04}" for number in range(1000)]
    for name in names:
        write_skill(tmp_path / ".agents/skills" / name)

    async def everything(client: Client) -> None:
        assert client.protocol_version == VERSIONS[era]
        rows = await list_all(client, "resources/list", "resources")
        assert [row["name"] for row in rows] == names
        if era == MODERN:
            skills = await list_all(client, "skills/list", "skills")
            assert [row["frontmatter"]["name"] for row in skills] == names
            got = await send_request(client, "skills/get", uri="skill://s0999/SKILL.md")
            lines = got["skill"]["_meta"].pop("skillhall/trust")
            assert [line.split()[0] for line in lines] == ["written", "approved", "changed", "use"]
            assert got["skill"] == skills[-1]
            inside = await send_request(client, "resources/directory/read", uri="skill://s0999")
            assert [row["name"] for row in inside["resources"]] == ["s0999"]
            assert (inside["ttlMs"], inside["cacheScope"]) == (5_000, "private")
        unknown = "skill://unknown/SKILL.md"
        data = await read_error_data(client.read_resource(unknown))
        assert data == {"code": "not_found", "uri": unknown}
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["greet"]
        assert (await client.get_prompt("greet", {"who": "you"})).messages
        assert len((await client.list_tools()).tools) == 4
        loaded = await client.call_tool("load_skill", {"name": "s0500"})
        assert "Do it." in str(loaded.content)
        assert (await client.read_resource("skill://s0001/SKILL.md")).contents

    with serving(tmp_path, make_token_settings(mcp_stateless=stateless)) as server:
        ask(server, everything, era)


@pytest.mark.parametrize("stateless", [False, True])
def test_added_skill_is_notified(tmp_path: Path, *, stateless: bool) -> None:
    make_skill(tmp_path / ".agents/skills", "one")

    def name_of(row: Mapping[str, Any]) -> str:
        return str(row["frontmatter"]["name"])

    async def names(client: Client) -> list[str]:
        async with client.listen(resources_list_changed=True) as stream:
            make_skill(tmp_path / ".agents/skills", "two")
            async for _ in stream:
                return [name_of(row) for row in await list_all(client, "skills/list", "skills")]
        return []

    with serving(tmp_path, make_settings(mcp_stateless=stateless)) as server:
        assert ask(server, names) == ["one", "two"]


def test_legacy_session_is_notified_on_its_stream(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills", "one")

    async def main(url: str) -> None:
        notified = anyio.Event()

        async def note(message: Any) -> None:  # noqa: ANN401 - whatever the server sends
            if message.method == "notifications/tools/list_changed":
                notified.set()

        with anyio.fail_after(DEADLINE):
            transport = streamable_http_client(url)
            async with Client(transport, mode=HANDSHAKE, message_handler=note) as client:
                assert (await client.list_tools()).tools
                make_skill(tmp_path / ".agents/skills", "two")
                await notified.wait()

    with serving(tmp_path) as server:
        anyio.run(main, f"http://127.0.0.1:{server.port}/mcp")


def test_stateless_server_declares_no_notifications_to_legacy_clients(tmp_path: Path) -> None:
    async def promised(client: Client) -> object:
        tools = client.server_capabilities.tools
        return tools and tools.list_changed

    with serving(tmp_path, make_settings(mcp_stateless=True)) as server:
        assert not ask(server, promised, HANDSHAKE)
        assert ask(server, promised, MODERN)
        assert "mcp-session-id" not in post(server).headers


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Authorization": ""}, 401, "UNAUTHORIZED"),
        ({"Authorization": "Bearer wrong"}, 401, "UNAUTHORIZED"),
        ({"Authorization": f"Basic {TOKEN}"}, 401, "UNAUTHORIZED"),
        ({"Host": "evil.example"}, 421, "MISDIRECTED"),
        ({"Origin": "https://evil.example"}, 403, "CROSS_ORIGIN"),
        ({"Origin": "null"}, 403, "CROSS_ORIGIN"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_unauthorized_requests_are_rejected(
    tmp_path: Path, method: str, headers: dict[str, str], status: int, code: str
) -> None:
    with serving(tmp_path, make_token_settings()) as server:
        body = INITIALIZE if method == "POST" else None
        reply = server.request(method, "/mcp", body, {**ACCEPT, **headers})
        assert (reply.status, reply.code) == (status, code)
        assert post(server).status == 200


def test_mcp_needs_a_token_with_the_scope_read(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills", "pdf")
    tokens = MemoryTokens()
    for scope in ("read", "report"):
        tokens.add(scope, (scope,))
    with serving(tmp_path, make_token_settings(), tokens) as server:
        server.headers = {"Authorization": "Bearer read"}

        async def list_tools(client: Client) -> set[str]:
            return {tool.name for tool in (await client.list_tools()).tools}

        assert "load_skill" in ask(server, list_tools)
        reply = post(server, headers={"Authorization": "Bearer report"})
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert "'read'" in reply.message


def test_invalid_requests_have_their_status(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert post(server, b"{").status == 400
        assert post(server, [INITIALIZE]).status == 400
        assert post(server, b"x" * (1 << 20) + b"x").status == 413
        assert post(server, headers={"Content-Type": "text/plain"}).status == 400
        assert post(server, headers={"Accept": "text/html"}).status == 406
        assert post(server, headers={"Mcp-Session-Id": "guessed"}).status == 404
        assert server.request("PUT", "/mcp", b"").status == 405
        assert server.request("GET", "/mcp/", None, ACCEPT).status == 404


def test_server_without_mcp_clients_does_not_load_the_sdk() -> None:
    script = "import sys, skillhall._internal.asgi; sys.exit('mcp' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=DEADLINE)


def test_concurrent_first_requests_are_answered(tmp_path: Path) -> None:
    with serving(tmp_path) as server, ThreadPoolExecutor(4) as clients:
        replies = [clients.submit(post, server) for _ in range(4)]
        assert [reply.result(DEADLINE).status for reply in replies] == [200] * 4
        assert len({reply.result().headers["Mcp-Session-Id"] for reply in replies}) == 4


def test_responses_have_the_common_headers(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        reply = post(server)
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["X-Request-Id"]
        assert reply.json["result"]["serverInfo"]["name"] == "skillhall"


def test_bug_does_not_leak_a_traceback(tmp_path: Path) -> None:
    chosen = make_settings()
    prompt_service = MemoryPromptService(error=RuntimeError("a secret"))
    services = Services(prompt_service, Collection(FolderStore(tmp_path), chosen))
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list", "params": {"_meta": meta}}
    headers = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "prompts/list"}
    with run_server(settings=chosen, services=services) as server:
        reply = post(server, message, headers)
    assert "a secret" not in reply.body.decode()
    assert reply.json["error"]["data"] == {"code": "internal"}


def test_shutdown_ends_streams_with_a_final_message(tmp_path: Path) -> None:
    async def listen(client: Client) -> str:
        async with client.listen(tools_list_changed=True) as stream:
            server.stop()
            async for event in stream:
                return f"received {event!r}"
        return "it ended"

    with serving(tmp_path) as server:
        assert ask(server, listen) == "it ended"


def test_server_stops_despite_an_open_stream(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        session = post(server).headers["Mcp-Session-Id"]
        with server.connect() as line:
            line.sendall(
                b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\n"
                b"Mcp-Session-Id: %s\r\n\r\n" % (server.port, session.encode())
            )
            assert line.recv(65_536).startswith(b"HTTP/1.1 200")
            server.stop()
            rest = b""
            while piece := line.recv(65_536):
                rest += piece
            assert rest.endswith(b"0\r\n\r\n")


def test_disconnected_client_is_unsubscribed(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills", "one")
    with serving(tmp_path) as server:
        session = post(server).headers["Mcp-Session-Id"]
        assert server.request("DELETE", "/mcp", None, {"Mcp-Session-Id": session}).status == 200
        assert post(server, headers={"Mcp-Session-Id": session}).status == 404


def test_dot_files_are_not_served(tmp_path: Path) -> None:
    planted = "TOKEN=7f3a"
    files = {".env": planted.encode(), "docs/.private/key.md": planted.encode(), "docs/a.md": b"a"}
    make_skill(tmp_path / ".agents/skills", "pdf", files=files)

    async def everything(client: Client) -> None:
        skills = await list_all(client, "skills/list", "skills")
        uris = [row["uri"] for row in skills[0]["resources"]]
        assert uris == ["skill://pdf/SKILL.md", "skill://pdf/docs/a.md"]
        inside = await send_request(client, "resources/directory/read", uri="skill://pdf")
        assert [row["name"] for row in inside["resources"]] == ["pdf", "docs"]
        loaded = await client.call_tool("load_skill", {"name": "pdf"})
        assert ".env" not in str(loaded.content)
        for path in (".env", "docs/.private/key.md"):
            read = await client.call_tool("read_skill_file", {"name": "pdf", "path": path})
            assert read.is_error
            assert planted not in str(read.content)
            with pytest.raises(MCPError, match="resource not found"):
                await client.read_resource(f"skill://pdf/{path}")

    with serving(tmp_path) as server:
        ask(server, everything)


def test_sessions_over_the_limit_get_retry_after(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills", "one")

    async def tools(client: Client) -> int:
        return len((await client.list_tools()).tools)

    with serving(tmp_path, make_settings(mcp_max_sessions="2")) as server:
        sessions = [post(server).headers["Mcp-Session-Id"] for _ in range(2)]
        refused = post(server)
        assert refused.status == 503
        assert "open sessions" in refused.json["error"]["message"]
        assert int(refused.headers["Retry-After"]) > 0
        assert ask(server, tools, MODERN) == 4  # a request of its own, without a session
        with pytest.raises(BaseExceptionGroup):
            ask(server, tools, HANDSHAKE)
        ended = server.request("DELETE", "/mcp", None, {"Mcp-Session-Id": sessions[0]})
        assert ended.status == 200
        assert ask(server, tools, HANDSHAKE) == 4


def test_idle_sessions_expire_and_make_room(tmp_path: Path) -> None:
    settings = make_settings(mcp_max_sessions="1", mcp_session_timeout="1")
    with serving(tmp_path, settings) as server:
        first = post(server).headers["Mcp-Session-Id"]
        give_up = time.monotonic() + DEADLINE
        while (reply := post(server)).status == 503 and time.monotonic() < give_up:
            pass
        assert reply.status == 200
        assert post(server, headers={"Mcp-Session-Id": first}).status == 404


@pytest.mark.parametrize("name", ["mcp_max_sessions", "mcp_session_timeout"])
@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", "9" * 20])
def test_non_positive_session_limit_is_rejected(tmp_path: Path, name: str, value: str) -> None:
    settings = make_settings(**{name: value})
    refused = pytest.raises(ConfigInvalid, match=f"SKILLHALL_{name.upper()}")
    with refused, serving(tmp_path, settings):
        pass
