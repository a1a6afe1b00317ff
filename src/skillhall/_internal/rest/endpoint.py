"""One call: from a request to an answer, whatever happens in between."""

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
    """A call that is answered without a framework, and the route that it belongs to."""

    handler: Handler
    route: str


# Which call a method and a raw path mean, if it is a hot one.
FastRouteFinder: TypeAlias = Callable[[str, bytes], FastRoute | None]


async def run_handler(handler: Handler, request: HttpRequest) -> ByteResponse:
    """The call's answer, or the answer that tells why there is none."""
    try:
        return await handler(request)
    except SkillhallError as error:
        return error_response(error, request.request_id)
    except OSError as error:
        return storage_error_response(error, request.request_id)


def make_endpoint(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """The call as a framework's route: the same function makes the answer."""

    async def respond(request: Request) -> Response:
        return Ready(await run_handler(handler, HttpRequest(request.scope, request.receive)))

    respond.__name__ = getattr(handler, "__name__", "respond")
    return respond


class FastPath:
    """Answers the hot calls itself, and leaves the others to the app behind it."""

    def __init__(self, app: ASGIApp, routes: tuple[FastRouteFinder, ...]) -> None:
        self._app = app
        self._routes = routes

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one request."""
        hot = self._find_route(scope) if scope["type"] == "http" else None
        if hot is None:
            return self._app(scope, receive, send)
        scope[ROUTE_KEY] = hot.route
        return _run_and_send(hot.handler, HttpRequest(scope, receive), send)

    def _find_route(self, scope: Scope) -> FastRoute | None:
        method, path = scope["method"], scope["raw_path"]
        for route in self._routes:
            found = route(method, path)
            if found is not None:
                return found
        return None


async def _run_and_send(handler: Handler, request: HttpRequest, send: Send) -> None:
    await (await run_handler(handler, request)).send(send)


DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 1000  # things on a page


def parse_limit(query: Mapping[str, str]) -> int:
    """How many are asked for at most. Raises: Refused."""
    text = query.get("limit", str(DEFAULT_PAGE_SIZE))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MAX_PAGE_SIZE:
        raise HttpError("invalid_argument", f"limit is a number from 1 to {MAX_PAGE_SIZE}")
    return int(text)
