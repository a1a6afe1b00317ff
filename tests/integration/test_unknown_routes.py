"""What no route answers: pages for browsers, the envelope for programs, and a right Allow."""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
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
    """The paths of all routes of the server, with x for each name in them."""
    return set()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, paths: set[str]) -> Iterator[RunningServer]:
    def noted(
        routers: Sequence[APIRouter],
        warm: Callable[[], Awaitable[None]],
        page: ErrorPageRenderer | None,
    ) -> FastAPI:
        for route in (route for router in routers for route in router.routes):
            assert isinstance(route, Route)
            paths.add(re.sub(r"\{[^}]*\}", "x", route.path))
        return build_fastapi_app(routers, warm, page)

    settings = team_settings(tmp_path_factory.mktemp("unrouted"), "")
    with (
        closing(open_prompt_service(settings)) as counter,
        closing(open_lazy_workspace(settings)) as door,
    ):
        services = Services(counter, open_collection(settings, counter), door)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("skillhall._internal.asgi.build_fastapi_app", noted)
            with run_server(settings=settings, services=services) as one:
                yield one


def status(server: RunningServer, method: str, path: str) -> int:
    """The status alone: some answers never end."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)) as line:
        line.request(method, path, headers={"Content-Length": "0"})
        return line.getresponse().status


def test_allow_names_every_method_of_every_route(server: RunningServer, paths: set[str]) -> None:
    assert len(paths) > 80
    for path in sorted(paths):
        wanted = {method for method in METHODS if status(server, method, path) != 405}
        reply = server.request("TRACE", path)
        assert reply.status == 405, path
        head = {"HEAD"} if "GET" in wanted else set()
        assert {*reply.headers["Allow"].split(", ")} == wanted | head, path


@pytest.mark.parametrize("method", ["OPTIONS", "PUT"])
def test_allow_is_right_at_mcp(server: RunningServer, method: str) -> None:
    reply = server.request(method, "/mcp")
    assert reply.status == 405
    assert {*reply.headers["Allow"].split(", ")} >= {"GET", "POST", "DELETE"}


@pytest.mark.parametrize("path", ["/nowhere", "/skills/x/y/z", "/favicon.ico", "/%00", "/a%2fb"])
def test_an_unknown_page_is_html_for_browsers(server: RunningServer, path: str) -> None:
    reply = server.request("GET", path, headers=BROWSER)
    assert reply.status == 404
    assert reply.headers["Content-Type"].startswith("text/html")
    assert b"This page does not exist." in reply.body
    reply = server.request("GET", path, headers={**BROWSER, "Accept-Language": "zh"})
    assert "此页面不存在" in reply.body.decode()


@pytest.mark.parametrize("headers", [{}, {"Accept": "application/json"}, {"Accept": "*/*"}])
def test_an_unknown_page_is_an_envelope_for_programs(
    server: RunningServer, headers: dict[str, str]
) -> None:
    reply = server.request("GET", "/nowhere", headers=headers)
    assert (reply.status, reply.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize("path", ["/api/v1/nowhere", "/metrics/x", "/.well-known/nowhere"])
def test_an_unknown_route_of_programs_is_an_envelope_for_everybody(
    server: RunningServer, path: str
) -> None:
    assert server.request("GET", path, headers=BROWSER).code == "NOT_FOUND"


def test_a_wrong_method_is_a_page_for_browsers(server: RunningServer) -> None:
    reply = server.request("POST", "/skills", headers=BROWSER)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")
    assert b"This page does not support that request." in reply.body


def test_spaces_around_the_value_of_a_header_are_no_part_of_it(server: RunningServer) -> None:
    answer = server.send_raw(
        f"GET /healthz HTTP/1.1\r\nHost: \t 127.0.0.1:{server.port} \t \r\n"
        "X-Request-Id:   abc   \r\nConnection: close\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"x-request-id: abc\r\n" in answer


@pytest.mark.parametrize("path", ["/healthz", "/skills", "/api/v1/prompts", "/mcp"])
@pytest.mark.parametrize(
    "head",
    [
        "X-Long: " + "a" * 65_536,
        "\r\n".join(f"X-{number}: {'a' * 1000}" for number in range(66)),
    ],
)
def test_a_head_over_64_kib_gets_431_however_it_arrives(
    server: RunningServer, path: str, head: str
) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{head}\r\n\r\n".encode()
    answer = server.send_raw(request)
    assert answer.startswith(b"HTTP/1.1 431")
    assert b'"code":"REQUEST_HEADERS_TOO_LARGE"' in answer
    assert b"connection: close" in answer


def test_an_address_over_64_kib_gets_431(server: RunningServer) -> None:
    request = f"GET /{'a' * 65_536} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    assert server.send_raw(request.encode()).startswith(b"HTTP/1.1 431")


def test_a_head_below_64_kib_is_read(server: RunningServer) -> None:
    request = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nX: {'a' * 64_000}\r\n\r\n"
    assert server.send_raw(request.encode()).startswith(b"HTTP/1.1 200")


def test_what_is_no_http_gets_400_in_the_envelope(server: RunningServer) -> None:
    answer = server.send_raw(b"NONSENSE\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b'"code":"BAD_REQUEST"' in answer


def test_a_token_with_spaces_around_it_is_the_same_token(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("token")
    settings = team_settings(folder, "", SKILLHALL_AUTH_TOKEN=TOKEN)
    with closing(open_prompt_service(settings)) as counter:
        services = Services(counter, open_collection(settings, counter))
        with run_server(settings=settings, services=services) as one:
            for given in (f"Bearer  {TOKEN} ", f"\tBearer {TOKEN}\t"):
                answer = one.send_raw(
                    f"GET /api/v1/prompts HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\n"
                    f"Authorization:{given}\r\nConnection: close\r\n\r\n".encode()
                )
                assert answer.startswith(b"HTTP/1.1 200")
