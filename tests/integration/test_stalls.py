"""Repositories, databases and models that never answer do not delay other requests."""

import shutil
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from skillhall._internal.agents import chat
from skillhall._internal.agents.chat.conversations import MAX_RUNNING_REPLIES
from skillhall._internal.asgi import Services
from skillhall._internal.http import thread_pool
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.server_skills import open_collection
from skillhall._internal.wiring.workspace import open_lazy_workspace
from skillhall._internal.workspace.workspace import LazyWorkspace, Workspace
from tests.support.git_server import git_repo, run_git_server
from tests.support.servers import DEADLINE, HttpResponse, RunningServer, run_server
from tests.support.skills import make_skill
from tests.support.team_server import make_commit_files, team_settings

FETCHES = 16
SKILL = {"id": "notes", "name": "notes", "description": "Keeps notes.", "body": "# Notes\n"}
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class HangingHost:
    """Host that accepts connections and never answers."""

    def __init__(self, listening: socket.socket) -> None:
        self.port = listening.getsockname()[1]
        self._listening = listening
        self._connections = ExitStack()
        self._accepted = threading.Semaphore(0)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:  # closed
                return
            self._connections.enter_context(connection)
            self._accepted.release()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    def wait_for_connections(self, number: int) -> None:
        for _ in range(number):
            assert self._accepted.acquire(timeout=DEADLINE)

    def close(self) -> None:
        """Close the connections, which ends the requests."""
        with suppress(OSError):  # it is closed already
            self._listening.shutdown(socket.SHUT_RDWR)
        self._connections.close()


@pytest.fixture
def host() -> Iterator[HangingHost]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        hanging = HangingHost(listening)
        yield hanging
        hanging.close()


@contextmanager
def running_server(
    folder: Path, repo: str = "", *, model: str = "", workspace: LazyWorkspace | None = None
) -> Iterator[RunningServer]:
    limit = {"SKILLHALL_MAX_FETCHES_PER_CLIENT": str(FETCHES)}
    settings = team_settings(folder, repo, **limit)._replace(model=model)
    make_skill(folder / "work/.agents/skills", "pdf")
    with (
        closing(open_prompt_service(settings)) as prompts,
        closing(workspace or open_lazy_workspace(settings)) as sessions,
    ):
        services = Services(prompts, open_collection(settings, prompts), sessions)
        with run_server(settings=settings, services=services) as server:
            yield server


def check_other_requests(server: RunningServer) -> None:
    """Check that everything that needs neither network nor model nor database works."""
    for path in ("/api/v1/prompts", "/api/v1/skills/pdf", "/skill/pdf", "/skills", "/sources"):
        assert server.request("GET", path).status == 200, path
    assert server.request("POST", "/api/v1/skills", SKILL).status == 201
    assert server.request("DELETE", "/api/v1/skills/notes").status == 200
    assert server.request("GET", "/readyz").status == 200
    call = {"name": "load_skill", "arguments": {"name": "pdf"}}
    result = call_mcp(server, "tools/call", call)["result"]
    assert "isError" not in result


def call_mcp(server: RunningServer, method: str, params: object) -> dict[str, dict[str, object]]:
    info = {"protocolVersion": "2025-06-18", "capabilities": {}}
    info |= {"clientInfo": {"name": "test", "version": "1"}}
    start = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}
    session = server.request("POST", "/mcp", start, MCP).headers["Mcp-Session-Id"]
    message = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
    reply = server.request("POST", "/mcp", message, {**MCP, "Mcp-Session-Id": session})
    answer: dict[str, dict[str, object]] = reply.json
    return answer


def read_metric(server: RunningServer, name: str, pool: str) -> float:
    text = server.request("GET", "/metrics").body.decode()
    line = next(line for line in text.splitlines() if line.startswith(f'{name}{{pool="{pool}"}}'))
    return float(line.rpartition(" ")[2])


@needs_git
def test_sixteen_hanging_repositories_delay_no_other_request(
    tmp_path: Path, host: HangingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_server(tmp_path) as server, ThreadPoolExecutor(FETCHES) as clients:
        requests: list[Future[HttpResponse]] = []
        for number in range(FETCHES):
            path = f"/api/v1/prompts?repo={quote(host.url(f'{number}.git'))}"
            requests.append(clients.submit(server.request, "GET", path))
        host.wait_for_connections(FETCHES)
        check_other_requests(server)
        assert server.request("POST", "/api/v1/sessions", {"name": "Plans"}).status == 201
        monkeypatch.setattr(thread_pool, "_MAX_WAIT", 0.1)
        source = host.url("more.git")
        refused = server.request("POST", "/api/v1/skills/import", {"source": source})
        assert (refused.status, refused.code) == (503, "OVERLOADED")
        assert int(refused.headers["Retry-After"]) > 0
        form = urlencode({"source": source}).encode()
        page = server.request("POST", "/skills/import/source", form, FORM)
        assert (page.status, b"The server is busy" in page.body) == (503, True)
        assert int(page.headers["Retry-After"]) > 0
        assert read_metric(server, "skillhall_pool_threads_busy", "fetch") == FETCHES
        assert read_metric(server, "skillhall_pool_rejected_total", "fetch") == 2
        assert not any(request.done() for request in requests)
        host.close()
        assert {request.result(DEADLINE).code for request in requests} == {"PROMPTS_SOURCE_ERROR"}


@needs_git
def test_hanging_refresh_of_the_configured_repository_delays_no_request(tmp_path: Path) -> None:
    git_repo(tmp_path / "served/team.git", make_commit_files(1))
    with (
        run_git_server(tmp_path / "served") as site,
        running_server(tmp_path, site.url("team.git")) as server,
        ThreadPoolExecutor(1) as clients,
    ):
        listed = server.request("GET", "/api/v1/prompts").json["data"]
        site.release_event = threading.Event()
        refreshed = clients.submit(server.request, "POST", "/api/v1/prompts/refresh", {})
        assert site.is_waiting.wait(DEADLINE)
        check_other_requests(server)
        assert server.request("GET", "/api/v1/prompts").json["data"] == listed
        assert not refreshed.done()
        site.release_event.set()
        assert refreshed.result(DEADLINE).status == 200


def test_frozen_database_delays_only_sessions(tmp_path: Path) -> None:
    thawed, is_waiting = threading.Event(), threading.Event()

    def open_frozen() -> Workspace:
        is_waiting.set()
        assert thawed.wait(DEADLINE)
        return open_lazy_workspace(team_settings(tmp_path, "")).open()

    with (
        running_server(tmp_path, workspace=LazyWorkspace(open_frozen)) as server,
        ThreadPoolExecutor(40) as clients,
    ):
        paths = ["/api/v1/sessions", "/sessions"] * 20  # more than the database has threads
        requests = [clients.submit(server.request, "GET", path) for path in paths]
        assert is_waiting.wait(DEADLINE)
        check_other_requests(server)
        assert read_metric(server, "skillhall_pool_threads_busy", "database") > 0
        thawed.set()
        # Those that waited too long for a thread were refused.
        assert {request.result(DEADLINE).status for request in requests} <= {200, 503}


def test_hanging_model_delays_no_other_request(
    tmp_path: Path, host: HangingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat.load_chat_class()  # the first import is slow
    monkeypatch.setenv("OPENAI_BASE_URL", host.url("v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    message = urlencode({"message": "Hello."})
    with (
        running_server(tmp_path, model="openai-chat:scripted") as server,
        ExitStack() as stack,
    ):
        for _ in range(MAX_RUNNING_REPLIES):
            connection = HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)
            stack.enter_context(closing(connection))
            headers = {**FORM, "Accept": "application/x-ndjson"}
            connection.request("POST", "/playground/send", message, headers)
            assert connection.getresponse().status == 200
        host.wait_for_connections(MAX_RUNNING_REPLIES)
        check_other_requests(server)
        assert server.request("GET", "/playground").status == 200
        refused = server.request("POST", "/playground/send", message.encode(), FORM)
        assert refused.status == 503
        assert int(refused.headers["Retry-After"]) > 0
        assert read_metric(server, "skillhall_pool_threads_busy", "model") == MAX_RUNNING_REPLIES


def test_event_streams_are_limited_per_client(tmp_path: Path) -> None:
    settings = team_settings(tmp_path, "", SKILLHALL_MAX_STREAMS_PER_CLIENT="1")
    with (
        closing(open_prompt_service(settings)) as prompts,
        closing(open_lazy_workspace(settings)) as sessions,
    ):
        services = Services(prompts, None, sessions)
        with (
            run_server(settings=settings, services=services) as server,
            closing(HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)) as connection,
        ):
            connection.request("GET", "/api/v1/events")
            assert connection.getresponse().readline() == b"retry: 2000\n"
            refused = server.request("GET", "/api/v1/events")
    assert (refused.status, refused.code) == (503, "OVERLOADED")
    assert "the limit of 1 open streams" in refused.message
