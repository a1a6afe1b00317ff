"""The framework behind the hot routes: it routes the rest, and writes the OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.routing import Match

from skillhall._internal.http.auth_middleware import is_browser_request
from skillhall._internal.http.errors import error_response, internal_error
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import HEAD_REQUEST_KEY, ROUTE_KEY
from skillhall._internal.http.response import JSON_HEADERS, ByteResponse, encode_json
from skillhall._internal.rest.endpoint import make_endpoint
from skillhall._internal.rest.responses import BEARER_SCHEME, error_schemas
from skillhall._version import VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillhall._internal.http.request import HttpRequest

# Clients of dot-ai, the original of this API, ask for the second one.
OPENAPI_PATHS = ("/api/v1/openapi.json", "/api/v1/openapi")
ErrorPageRenderer: TypeAlias = Callable[["HttpRequest", HttpError], ByteResponse]
_METHOD_NOT_ALLOWED = 405
_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def build_fastapi_app(
    routers: Sequence[APIRouter],
    on_startup: Callable[[], Awaitable[None]],
    render_error_page: ErrorPageRenderer | None = None,
) -> FastAPI:
    """The routes in a framework that runs `warm` in the background of its first requests.

    `page` tells browsers what no route answers; without it they get the envelope, too.
    """
    refusals = _FrameworkErrors(render_error_page)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warming = asyncio.ensure_future(on_startup())
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
        exception_handlers={
            HTTPException: refusals.handle_no_route,
            Exception: refusals.handle_exception,
        },
    )
    for router in routers:
        app.include_router(router)
    document = _OpenApiDocument(app)
    read = make_endpoint(document.read)
    for path in OPENAPI_PATHS:
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
        asked = {**scope, "method": "GET", HEAD_REQUEST_KEY: True}
        await self._app(asked, receive, send)
        scope.update({key: asked[key] for key in (ROUTE_KEY, "route") if key in asked})


class _OpenApiDocument:
    """The OpenAPI document, written once."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._data = b""

    async def read(self, request: HttpRequest) -> ByteResponse:  # noqa: ARG002 - a call's signature
        """The document, not in an envelope: it has a form of its own."""
        self._data = self._data or encode_json(_add_components(self._app.openapi()))
        return ByteResponse(200, (*JSON_HEADERS, (b"cache-control", b"no-cache")), (self._data,))


def _add_components(document: dict[str, Any]) -> dict[str, Any]:
    """The document with what its routes name, and the framework does not know."""
    components = document.setdefault("components", {})
    components.setdefault("securitySchemes", {})[BEARER_SCHEME] = {
        "type": "http",
        "scheme": "bearer",
    }
    components.setdefault("schemas", {}).update(error_schemas())
    return document


class _FrameworkErrors:
    """The answers of the framework itself: as pages to browsers, in the envelope to programs."""

    def __init__(self, render_page: ErrorPageRenderer | None) -> None:
        self._render_page = render_page

    async def handle_no_route(self, request: Request, error: Exception) -> Response:
        """The answer when the framework knows no such route, or not with that method."""
        return await self._respond(request, _to_http_error(request, error))

    async def handle_exception(self, request: Request, _: Exception) -> Response:
        """The answer when there is a bug; the framework raises it again for the outermost layer."""
        return await self._respond(request, internal_error())

    async def _respond(self, request: Request, error: HttpError) -> Response:
        async def refuse(exchange: HttpRequest) -> ByteResponse:
            if self._render_page is not None and is_browser_request(exchange.scope):
                return self._render_page(exchange, error)
            return error_response(error, exchange.request_id)

        return await make_endpoint(refuse)(request)


def _to_http_error(request: Request, error: Exception) -> HttpError:
    if not isinstance(error, HTTPException) or error.status_code != _METHOD_NOT_ALLOWED:
        return HttpError("not_found", "there is no such route")
    methods = _allowed_methods(request)
    headers = ((b"allow", methods.encode("latin-1")),)
    return HttpError("method_not_allowed", f"that route takes {methods} only", headers=headers)


def _allowed_methods(request: Request) -> str:
    """The methods of all routes with that path; the framework tells those of the first alone."""
    found = [method for method in _METHODS if _accepts_method(request, method)]
    return ", ".join(sorted({*found, "HEAD"} if "GET" in found else found))


def _accepts_method(request: Request, method: str) -> bool:
    asked = {**request.scope, "method": method}
    return any(route.matches(asked)[0] is Match.FULL for route in request.app.routes)
