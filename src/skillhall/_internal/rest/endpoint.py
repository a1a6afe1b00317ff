"""One call: from a request to an answer, whatever happens in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fastapi import Request
from starlette.responses import Response

from skillhall._internal.http.errors import disk_answer, error_answer
from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.request import ROUTE, Exchange
from skillhall._internal.http.response import Answer, Ready
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

Call: TypeAlias = Callable[[Exchange], Awaitable[Answer]]


class Hot(NamedTuple):
    """A call that is answered without a framework, and the route that it belongs to."""

    call: Call
    route: str


# Which call a method and a raw path mean, if it is a hot one.
HotRoute: TypeAlias = Callable[[str, bytes], Hot | None]


async def answer(call: Call, exchange: Exchange) -> Answer:
    """The call's answer, or the answer that tells why there is none."""
    try:
        return await call(exchange)
    except SkillhallError as error:
        return error_answer(error, exchange.request_id)
    except OSError as error:
        return disk_answer(error, exchange.request_id)


def endpoint(call: Call) -> Callable[[Request], Awaitable[Response]]:
    """The call as a framework's route: the same function makes the answer."""

    async def respond(request: Request) -> Response:
        return Ready(await answer(call, Exchange(request.scope, request.receive)))

    respond.__name__ = getattr(call, "__name__", "respond")
    return respond


class HotFront:
    """Answers the hot calls itself, and leaves the others to the app behind it."""

    def __init__(self, app: ASGIApp, routes: tuple[HotRoute, ...]) -> None:
        self._app = app
        self._routes = routes

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one request."""
        hot = self._find(scope) if scope["type"] == "http" else None
        if hot is None:
            return self._app(scope, receive, send)
        scope[ROUTE] = hot.route
        return _answered(hot.call, Exchange(scope, receive), send)

    def _find(self, scope: Scope) -> Hot | None:
        method, path = scope["method"], scope["raw_path"]
        for route in self._routes:
            found = route(method, path)
            if found is not None:
                return found
        return None


async def _answered(call: Call, exchange: Exchange, send: Send) -> None:
    await (await answer(call, exchange)).send(send)


PAGE, MOST = 100, 1000  # things on a page


def page_limit(asked: Mapping[str, str]) -> int:
    """How many are asked for at most. Raises: Refused."""
    text = asked.get("limit", str(PAGE))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MOST:
        raise Refused("invalid_argument", f"limit is a number from 1 to {MOST}")
    return int(text)
