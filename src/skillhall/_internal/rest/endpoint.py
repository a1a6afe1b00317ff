"""Runs handlers: from a request to a response, including errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fastapi import Request
from starlette.responses import Response

from skillhall._internal.http.errors import error_response, storage_error_response
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import ROUTE_KEY, HttpRequest
from skillhall._internal.http.response import ByteResponse, Ready
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

Handler: TypeAlias = Callable[[HttpRequest], Awaitable[ByteResponse]]


class FastRoute(NamedTuple):
    """A handler that runs without FastAPI, and its route template."""

    handler: Handler
    route: str


# Maps a method and a raw path to a fast route, if there is one.
FastRouteFinder: TypeAlias = Callable[[str, bytes], FastRoute | None]


async def run_handler(handler: Handler, request: HttpRequest) -> ByteResponse:
    """Run a handler; turn its errors into error responses."""
    try:
        return await handler(request)
    except SkillhallError as error:
        return error_response(error, request.request_id)
    except OSError as error:
        return storage_error_response(error, request.request_id)


def make_endpoint(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Wrap a handler as a FastAPI endpoint."""

    async def respond(request: Request) -> Response:
        return Ready(await run_handler(handler, HttpRequest(request.scope, request.receive)))

    # FastAPI derives the operation id from the name.
    respond.__name__ = getattr(handler, "__name__", "respond")
    return respond


def make_summary(handler: Callable[..., object]) -> str:
    """Return the summary of an operation, in sentence case: "List prompts"."""
    return str(getattr(handler, "__name__", "")).replace("_", " ").capitalize()


class FastPath:
    """Runs the most frequent handlers directly and passes other requests to FastAPI."""

    def __init__(self, app: ASGIApp, routes: tuple[FastRouteFinder, ...]) -> None:
        self._app = app
        self._routes = routes

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle a request."""
        fast = self._find_route(scope) if scope["type"] == "http" else None
        if fast is None:
            return self._app(scope, receive, send)
        scope[ROUTE_KEY] = fast.route
        return _run_and_send(fast.handler, HttpRequest(scope, receive), send)

    def _find_route(self, scope: Scope) -> FastRoute | None:
        method, path = scope["method"], scope["raw_path"]
        matches = (find(method, path) for find in self._routes)
        return next((route for route in matches if route is not None), None)


async def _run_and_send(handler: Handler, request: HttpRequest, send: Send) -> None:
    await (await run_handler(handler, request)).send(send)


DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 1000


def parse_limit(query: Mapping[str, str]) -> int:
    """Return the page size of a query. Raises: HttpError."""
    text = query.get("limit", str(DEFAULT_PAGE_SIZE))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MAX_PAGE_SIZE:
        raise HttpError("invalid_argument", f"limit must be a number from 1 to {MAX_PAGE_SIZE}")
    return int(text)
