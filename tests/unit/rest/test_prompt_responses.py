import asyncio
from collections.abc import Sequence

import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from skillhall._internal.http.request import HEADERS_KEY, REQUEST_ID_KEY
from skillhall._internal.prompt_server.prompt_model import PromptArgument
from skillhall._internal.rest.prompt_responses import PromptFastPath, PromptResponder
from tests.support.prompt_services import MemoryPromptService, make_prompt

PROMPTS = (make_prompt(), make_prompt("ask", arguments=[PromptArgument("topic", required=True)]))
REGULAR_ROUTE = 299  # status of the app behind the fast path


async def regular_route(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(status_code=REGULAR_ROUTE)(scope, receive, send)


def request_status(
    method: str,
    path: bytes,
    headers: dict[bytes, bytes] | None = None,
    *,
    query: bytes = b"",
    service: MemoryPromptService | None = None,
) -> int:
    """Send a request through the fast path and return the status of the response."""
    scope = {
        "type": "http",
        "method": method,
        "raw_path": path,
        "query_string": query,
        HEADERS_KEY: headers or {},
        REQUEST_ID_KEY: "7",
    }
    messages: list[Message] = []

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        messages.append(message)

    fast_path = PromptFastPath(
        regular_route, PromptResponder(service or MemoryPromptService(PROMPTS))
    )
    asyncio.run(fast_path(scope, receive, send))
    return int(messages[0]["status"])


@pytest.mark.parametrize(
    ("method", "path"), [("GET", b"/api/v1/prompts"), ("POST", b"/api/v1/prompts/greet")]
)
def test_list_and_prompt_of_a_cached_snapshot_take_the_fast_path(method: str, path: bytes) -> None:
    assert request_status(method, path) == 200
    assert request_status(method, path, query=b"source=x") == REGULAR_ROUTE
    assert request_status(method, path, {b"x-dot-ai-git-token": b"t"}) == REGULAR_ROUTE
    due = MemoryPromptService(PROMPTS, is_refresh_due=True)
    assert request_status(method, path, service=due) == REGULAR_ROUTE
    failing = MemoryPromptService(PROMPTS, error=PermissionError())
    assert request_status(method, path, service=failing) == REGULAR_ROUTE


@pytest.mark.parametrize("name", [b"unknown", b"ask", b"refresh", b"sources", b"a%2Fb", b""])
def test_other_prompts_take_the_regular_route(name: bytes) -> None:
    assert request_status("POST", b"/api/v1/prompts/" + name) == REGULAR_ROUTE


@pytest.mark.parametrize("headers", [{b"content-length": b"2"}, {b"transfer-encoding": b"chunked"}])
def test_requests_with_a_body_take_the_regular_route(headers: dict[bytes, bytes]) -> None:
    assert request_status("POST", b"/api/v1/prompts/greet", headers) == REGULAR_ROUTE


def list_response(names: Sequence[str], accept_encoding: str) -> Response:
    responder = PromptResponder(MemoryPromptService([make_prompt(name) for name in names]))
    snapshot = responder.service.snapshot()
    return asyncio.run(responder.list_prompts(snapshot, None, accept_encoding))


def test_only_large_lists_are_compressed() -> None:
    many = [f"prompt-{number}" for number in range(1_000)]
    assert "content-encoding" not in list_response(["one"], "gzip").headers
    assert "content-encoding" not in list_response(many, "identity").headers
    assert list_response(many, "gzip").headers["content-encoding"] == "gzip"
