"""Unknown routes and methods: pages for browsers, JSON for programs, correct Allow headers."""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from html import unescape
from http.client import HTTPConnection

import pytest
from fastapi import APIRouter, FastAPI
from starlette.routing import Route

from skillhall._internal.asgi import Services
from skillhall._internal.rest.app import ErrorPageRenderer, build_fastapi_app
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.server_skills import open_collection
from skillhall._internal.wiring.workspace import open_lazy_workspace
from tests.support.servers import DEADLINE, TOKEN, RunningServer, run_server
from tests.support.team_server import team_settings

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@pytest.fixture(scope="module")
def paths() -> set[str]:
    """Paths of all routes of the server, with x for each parameter."""
    return set()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, paths: set[str]) -> Iterator[RunningServer]:
    def record_paths(
        routers: Sequence[APIRouter],
        on_startup: Callable[[], Awaitable[None]],
        render_error_page: ErrorPageRenderer | None,
    ) -> FastAPI:
        for route in (route for router in routers for route in router.routes):
            assert isinstance(route, Route)
            paths.add(re.sub(r"\{[^}]*\}", "x", route.path))
        return build_fastapi_app(routers, on_startup, render_error_page)

    settings = team_settings(tmp_path_factory.mktemp("unrouted"), "")
    with (
        closing(open_prompt_service(settings)) as prompts,
        closing(open_lazy_workspace(settings)) as workspace,
    ):
        services = Services(prompts, open_collection(settings, prompts), workspace)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("skillhall._internal.asgi.build_fastapi_app", record_paths)
            with run_server(settings=settings, services=services) as running:
                yield running


def status(server: RunningServer, method: str, path: str) -> int:
    """Return only the status, since some responses never end."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)) as connection:
        connection.request(method, path, headers={"Content-Length": "0"})
        return connection.getresponse().status


def test_allow_lists_every_method_of_every_route(server: RunningServer, paths: set[str]) -> None:
    assert len(paths) > 80
    for path in sorted(paths):
        expected = {method for method in METHODS if status(server, method, path) != 405}
        reply = server.request("TRACE", path)
        assert reply.status == 405, path
        head = {"HEAD"} if "GET" in expected else set()
        assert {*reply.headers["Allow"].split(", ")} == expected | head, path


@pytest.mark.parametrize("method", ["OPTIONS", "PUT"])
def test_allow_is_correct_for_mcp(server: RunningServer, method: str) -> None:
    reply = server.request(method, "/mcp")
    assert reply.status == 405
    assert {*reply.headers["Allow"].split(", ")} >= {"GET", "POST", "DELETE"}


@pytest.mark.parametrize("path", ["/nowhere", "/skills/x/y/z", "/favicon.ico", "/%00", "/a%2fb"])
def test_unknown_page_is_html_for_browsers(server: RunningServer, path: str) -> None:
    reply = server.request("GET", path, headers=BROWSER)
    assert reply.status == 404
    assert reply.headers["Content-Type"].startswith("text/html")
    assert "This page doesn't exist." in unescape(reply.body.decode())
    reply = server.request("GET", path, headers={**BROWSER, "Accept-Language": "zh"})
    assert "此页面不存在" in reply.body.decode()


@pytest.mark.parametrize("headers", [{}, {"Accept": "application/json"}, {"Accept": "*/*"}])
def test_unknown_page_is_json_for_programs(server: RunningServer, headers: dict[str, str]) -> None:
    reply = server.request("GET", "/nowhere", headers=headers)
    assert (reply.status, reply.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize("path", ["/api/v1/nowhere", "/metrics/x", "/.well-known/nowhere"])
def test_unknown_api_route_is_json_even_for_browsers(server: RunningServer, path: str) -> None:
    assert server.request("GET", path, headers=BROWSER).code == "NOT_FOUND"


def test_wrong_method_is_html_for_browsers(server: RunningServer) -> None:
    reply = server.request("POST", "/skills", headers=BROWSER)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")
    assert "This page can't handle that request." in unescape(reply.body.decode())


def test_whitespace_around_header_values_is_stripped(server: RunningServer) -> None:
    response = server.send_raw(
        f"GET /healthz HTTP/1.1\r\nHost: \t 127.0.0.1:{server.port} \t \r\n"
        "X-Request-Id:   abc   \r\nConnection: close\r\n\r\n".encode()
    )
    assert response.startswith(b"HTTP/1.1 200")
    assert b"x-request-id: abc\r\n" in response


@pytest.mark.parametrize("path", ["/healthz", "/skills", "/api/v1/prompts", "/mcp"])
@pytest.mark.parametrize(
    "head",
    [
        "X-Long: " + "a" * 65_536,
        "\r\n".join(f"X-{number}: {'a' * 1000}" for number in range(66)),
    ],
)
def test_request_head_over_64_kib_gets_431(server: RunningServer, path: str, head: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{head}\r\n\r\n".encode()
    response = server.send_raw(request)
    assert response.startswith(b"HTTP/1.1 431")
    assert b'"code":"REQUEST_HEADERS_TOO_LARGE"' in response
    assert b"connection: close" in response


def test_url_over_64_kib_gets_431(server: RunningServer) -> None:
    request = f"GET /{'a' * 65_536} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    assert server.send_raw(request.encode()).startswith(b"HTTP/1.1 431")


def test_request_head_below_64_kib_is_accepted(server: RunningServer) -> None:
    request = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nX: {'a' * 64_000}\r\n\r\n"
    assert server.send_raw(request.encode()).startswith(b"HTTP/1.1 200")


def test_invalid_http_gets_400_as_json(server: RunningServer) -> None:
    response = server.send_raw(b"NONSENSE\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 400")
    assert b'"code":"BAD_REQUEST"' in response


def test_whitespace_around_the_token_is_ignored(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("token")
    settings = team_settings(folder, "", SKILLHALL_AUTH_TOKEN=TOKEN)
    with closing(open_prompt_service(settings)) as prompts:
        services = Services(prompts, open_collection(settings, prompts))
        with run_server(settings=settings, services=services) as running:
            for value in (f"Bearer  {TOKEN} ", f"\tBearer {TOKEN}\t"):
                response = running.send_raw(
                    f"GET /api/v1/prompts HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n"
                    f"Authorization:{value}\r\nConnection: close\r\n\r\n".encode()
                )
                assert response.startswith(b"HTTP/1.1 200")
