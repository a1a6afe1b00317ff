"""Shutdown of a server with requests in progress."""

import logging
import shutil
import threading
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal import asgi
from skillhall._internal.asgi import Services
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.server_skills import open_collection
from tests.support.git_server import git_repo, run_git_server
from tests.support.servers import DEADLINE, HttpResponse, run_server
from tests.support.team_server import make_commit_files, team_settings

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def test_import_interrupted_by_shutdown_gets_503(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(asgi, "GRACE_PERIOD", 0)
    git_repo(tmp_path / "served/acme/skills.git", make_commit_files(1))
    replies: list[HttpResponse] = []
    with run_git_server(tmp_path / "served") as site:
        site.release_event = threading.Event()
        body = {"source": site.url("acme/skills.git")}
        settings = team_settings(tmp_path, "")
        with closing(open_prompt_service(settings)) as prompts:
            services = Services(prompts, open_collection(settings, prompts))
            with run_server(settings=settings, services=services) as server:
                client = threading.Thread(
                    target=lambda: replies.append(
                        server.request("POST", "/api/v1/skills/import", body)
                    )
                )
                client.start()
                assert site.is_waiting.wait(DEADLINE)
            client.join(DEADLINE)
        site.release_event.set()
    [reply] = replies
    assert (reply.status, reply.code) == (503, "SHUTTING_DOWN")
    assert int(reply.headers["Retry-After"]) > 0
    assert reply.json["meta"]["requestId"] == reply.headers["X-Request-Id"]
    assert tracebacks(caplog) == []


def test_server_with_an_open_mcp_session_stops_cleanly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = team_settings(tmp_path, "")
    accept = {"Accept": "application/json, text/event-stream"}
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    with closing(open_prompt_service(settings)) as prompts:
        services = Services(prompts, open_collection(settings, prompts))
        with run_server(settings=settings, services=services) as server:
            reply = server.request("POST", "/mcp", call, accept)
            assert reply.headers["Mcp-Session-Id"]
    assert tracebacks(caplog) == []


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [r for r in caplog.records if r.exc_info or "Traceback" in r.getMessage()]
