"""The framework behind the hot routes: it routes the rest, and writes the OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.routing import Match

from skillhall._internal.http.auth_middleware import is_person
from skillhall._internal.http.errors import error_answer, internal_refusal
from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.request import HEAD, ROUTE
from skillhall._internal.http.response import JSON, Answer, encoded
from skillhall._internal.rest.endpoint import endpoint
from skillhall._internal.rest.responses import BEARER, error_schemas
from skillhall._version import VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillhall._internal.http.request import Exchange

# Clients of dot-ai, the original of this API, ask for the second one.
OPENAPI = ("/api/v1/openapi.json", "/api/v1/openapi")
ErrorPage: TypeAlias = Callable[["Exchange", Refused], Answer]
_NO_METHOD = 405
_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def framework(
    routers: Sequence[APIRouter],
    warm: Callable[[], Awaitable[None]],
    page: ErrorPage | None = None,
) -> FastAPI:
    """The routes in a framework that runs `warm` in the background of its first requests.

    `page` tells browsers what no route answers; without it they get the envelope, too.
    """
    refusals = _Refusals(page)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warming = asyncio.ensure_future(warm())
        yield
        warming.cancel()
        with suppress(asyncio.CancelledError):
            await warming

    app = FastAPI(
        title="Skillhall",
        version=VERSION,
        description="Prompts and Agent Skills out of git repositories.",
        openapi_url=None,
        docs_url=None,  # its pages load scripts from other hosts
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers={HTTPException: refusals.no_route, Exception: refusals.bug},
    )
    for router in routers:
        app.include_router(router)
    document = _Document(app)
    read = endpoint(document.read)
    for path in OPENAPI:
        app.add_api_route(path, read, methods=["GET"], include_in_schema=False)
    return app


class HeadAsGet:
    """HEAD is GET without a body, which the server itself leaves out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        asked = {**scope, "method": "GET", HEAD: True}
        await self._app(asked, receive, send)
        scope.update({key: asked[key] for key in (ROUTE, "route") if key in asked})


class _Document:
    """The OpenAPI document, written once."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._data = b""

    async def read(self, exchange: Exchange) -> Answer:  # noqa: ARG002 - a call's signature
        """The document, not in an envelope: it has a form of its own."""
        self._data = self._data or encoded(_completed(self._app.openapi()))
        return Answer(200, (*JSON, (b"cache-control", b"no-cache")), (self._data,))


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with what its routes name, and the framework does not know."""
    components = document.setdefault("components", {})
    components.setdefault("securitySchemes", {})[BEARER] = {"type": "http", "scheme": "bearer"}
    components.setdefault("schemas", {}).update(error_schemas())
    return document


class _Refusals:
    """The answers of the framework itself: as pages to browsers, in the envelope to programs."""

    def __init__(self, page: ErrorPage | None) -> None:
        self._page = page

    async def no_route(self, request: Request, error: Exception) -> Response:
        """The answer when the framework knows no such route, or not with that method."""
        return await self._refuse(request, _refusal(request, error))

    async def bug(self, request: Request, _: Exception) -> Response:
        """The answer when there is a bug; the framework raises it again for the outermost layer."""
        return await self._refuse(request, internal_refusal())

    async def _refuse(self, request: Request, refusal: Refused) -> Response:
        async def refuse(exchange: Exchange) -> Answer:
            if self._page is not None and is_person(exchange.scope):
                return self._page(exchange, refusal)
            return error_answer(refusal, exchange.request_id)

        return await endpoint(refuse)(request)


def _refusal(request: Request, error: Exception) -> Refused:
    if not isinstance(error, HTTPException) or error.status_code != _NO_METHOD:
        return Refused("not_found", "there is no such route")
    methods = _allowed(request)
    headers = ((b"allow", methods.encode("latin-1")),)
    return Refused("method_not_allowed", f"that route takes {methods} only", headers=headers)


def _allowed(request: Request) -> str:
    """The methods of all routes with that path; the framework tells those of the first alone."""
    found = [method for method in _METHODS if _takes(request, method)]
    return ", ".join(sorted({*found, "HEAD"} if "GET" in found else found))


def _takes(request: Request, method: str) -> bool:
    asked = {**request.scope, "method": method}
    return any(route.matches(asked)[0] is Match.FULL for route in request.app.routes)
