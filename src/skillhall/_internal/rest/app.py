"""The FastAPI app: routing, errors of the framework and the OpenAPI document."""

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
from skillhall._internal.http.request import HEAD_REQUEST_KEY, REQUEST_ID_KEY, ROUTE_KEY
from skillhall._internal.http.response import JSON_HEADERS, ByteResponse, Ready, encode_json
from skillhall._internal.rest.endpoint import make_endpoint
from skillhall._internal.rest.responses import BEARER_SCHEME, error_schemas
from skillhall._version import VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillhall._internal.http.request import HttpRequest

# Clients of dot-ai, where this API comes from, use the second path.
OPENAPI_PATHS = ("/api/v1/openapi.json", "/api/v1/openapi")
ErrorPageRenderer: TypeAlias = Callable[["Request", HttpError], "Response"]
_METHOD_NOT_ALLOWED = 405
_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def build_fastapi_app(
    routers: Sequence[APIRouter],
    on_startup: Callable[[], Awaitable[None]],
    render_error_page: ErrorPageRenderer | None = None,
) -> FastAPI:
    """Return an app with these routers that runs `on_startup` in the background.

    `render_error_page` renders errors for browsers; without it they get JSON.
    """
    errors = _FrameworkErrors(render_error_page)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        startup = asyncio.ensure_future(on_startup())
        yield
        startup.cancel()
        with suppress(asyncio.CancelledError):
            await startup

    app = FastAPI(
        title="Skillhall",
        version=VERSION,
        description="Prompts and Agent Skills from git repositories.",
        openapi_url=None,
        docs_url=None,  # FastAPI's pages load scripts from other hosts
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers={
            HTTPException: errors.handle_no_route,
            Exception: errors.handle_exception,
        },
    )
    for router in routers:
        app.include_router(router)
    endpoint = make_endpoint(_OpenApiDocument(app).read)
    for path in OPENAPI_PATHS:
        app.add_api_route(path, endpoint, methods=["GET"], include_in_schema=False)
    return app


class HeadAsGet:
    """Routes HEAD like GET; uvicorn drops the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, HEAD as GET."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        get_scope = {**scope, "method": "GET", HEAD_REQUEST_KEY: True}
        await self._app(get_scope, receive, send)
        # The metrics read the route from the original scope.
        scope.update({key: get_scope[key] for key in (ROUTE_KEY, "route") if key in get_scope})


class _OpenApiDocument:
    """The OpenAPI document, generated on the first request."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._data = b""

    async def read(self, request: HttpRequest) -> ByteResponse:  # noqa: ARG002 - a handler's signature
        """Return the document, without an envelope."""
        self._data = self._data or encode_json(_add_components(self._app.openapi()))
        return ByteResponse(200, (*JSON_HEADERS, (b"cache-control", b"no-cache")), (self._data,))


def _add_components(document: dict[str, Any]) -> dict[str, Any]:
    """Add the schemas that routes refer to but FastAPI does not know."""
    components = document.setdefault("components", {})
    components.setdefault("securitySchemes", {})[BEARER_SCHEME] = {
        "type": "http",
        "scheme": "bearer",
    }
    components.setdefault("schemas", {}).update(error_schemas())
    return document


class _FrameworkErrors:
    """Responses for errors of the framework: pages for browsers, JSON for other clients."""

    def __init__(self, render_page: ErrorPageRenderer | None) -> None:
        self._render_page = render_page

    async def handle_no_route(self, request: Request, error: Exception) -> Response:
        """Return 404 for an unknown route, or 405 for an unknown method."""
        return await self._respond(request, _to_http_error(request, error))

    async def handle_exception(self, request: Request, _: Exception) -> Response:
        """Return 500 for a bug. Starlette raises it again, so that the middleware logs it."""
        return await self._respond(request, internal_error())

    async def _respond(self, request: Request, error: HttpError) -> Response:
        if self._render_page is not None and is_browser_request(request.scope):
            return self._render_page(request, error)
        return Ready(error_response(error, request.scope[REQUEST_ID_KEY]))


def _to_http_error(request: Request, error: Exception) -> HttpError:
    if not isinstance(error, HTTPException) or error.status_code != _METHOD_NOT_ALLOWED:
        return HttpError("not_found", "route not found")
    methods = _allowed_methods(request)
    headers = ((b"allow", methods.encode("latin-1")),)
    message = f"method not allowed, use {methods}"
    return HttpError("method_not_allowed", message, headers=headers)


def _allowed_methods(request: Request) -> str:
    """Return the methods of all routes with this path; Starlette has those of the first."""
    allowed = {method for method in _METHODS if _accepts_method(request, method)}
    return ", ".join(sorted(allowed | {"HEAD"} if "GET" in allowed else allowed))


def _accepts_method(request: Request, method: str) -> bool:
    scope = {**request.scope, "method": method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)
