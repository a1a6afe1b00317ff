"""The framework behind the hot routes: it routes the rest, and writes the OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException

from skillhall.surfaces.http.answer import JSON, Answer, encoded
from skillhall.surfaces.http.exchange import HEAD, ROUTE
from skillhall.surfaces.http.refusal import Refused
from skillhall.surfaces.rest.calls import endpoint
from skillhall.surfaces.rest.documents import BEARER, error_schemas
from skillhall.surfaces.rest.errors import error_answer, internal_answer
from skillhall.version import VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillhall.surfaces.http.exchange import Exchange

# Clients of dot-ai, the original of this API, ask for the second one.
OPENAPI = ("/api/v1/openapi.json", "/api/v1/openapi")
_NO_METHOD = 405


def framework(routers: Sequence[APIRouter], warm: Callable[[], Awaitable[None]]) -> FastAPI:
    """The routes in a framework that does `warm` beside its first requests."""

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
        exception_handlers={HTTPException: _no_route, Exception: _bug},
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


async def _no_route(request: Request, error: Exception) -> Response:
    """The answer when the framework knows no such route, or not with that method."""

    async def refuse(exchange: Exchange) -> Answer:
        return error_answer(_refusal(error), exchange.request_id)

    return await endpoint(refuse)(request)


async def _bug(request: Request, _: Exception) -> Response:
    """The answer when there is a bug; the framework raises it again, for the outermost layer."""

    async def tell(exchange: Exchange) -> Answer:
        return internal_answer(exchange.request_id)

    return await endpoint(tell)(request)


def _refusal(error: Exception) -> Refused:
    if not isinstance(error, HTTPException) or error.status_code != _NO_METHOD:
        return Refused("not_found", "there is no such route")
    allowed = (error.headers or {}).get("Allow", "")
    methods = "GET, HEAD" if allowed == "GET" else allowed
    headers = ((b"allow", methods.encode("latin-1")),)
    return Refused("method_not_allowed", f"that route takes {methods} only", headers=headers)
