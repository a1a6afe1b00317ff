"""The FastAPI app: routing, error responses and the OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from skillhall._internal.http.access import action_of, needs
from skillhall._internal.http.auth_middleware import is_browser_request
from skillhall._internal.http.errors import error_response, internal_error
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import HEAD_REQUEST_KEY, REQUEST_ID_KEY, ROUTE_KEY
from skillhall._internal.http.response import encode_json
from skillhall._internal.http.thread_pool import WorkerPools
from skillhall._internal.rest.etag import NO_CACHE
from skillhall._internal.rest.responses import BEARER_SCHEME, error_schemas
from skillhall._version import VERSION
from skillhall.errors import SkillhallError

# Clients of dot-ai, where this API comes from, use the second path.
OPENAPI_PATHS = ("/api/v1/openapi.json", "/api/v1/openapi")
ErrorPageRenderer: TypeAlias = Callable[[Request, HttpError], Response]
_METHOD_NOT_ALLOWED = 405
_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
_FASTAPI_ERROR_SCHEMAS = ("HTTPValidationError", "ValidationError")


def build_fastapi_app(
    routers: Sequence[APIRouter],
    on_startup: Callable[[], Awaitable[None]],
    render_error_page: ErrorPageRenderer | None = None,
) -> FastAPI:
    """Return an app with these routers that runs `on_startup` in the background.

    Raises: TypeError if a route names no action.

    `render_error_page` renders routing errors and internal errors for browsers; without it, they
    get JSON.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        startup = asyncio.ensure_future(on_startup())
        yield
        startup.cancel()
        with suppress(asyncio.CancelledError):
            await startup

    async def respond_with_page(request: Request, error: Exception) -> Response:
        # Starlette raises exceptions other than HTTPException again; the middleware logs them.
        is_unrouted = isinstance(error, HTTPException)
        failure = _routing_error(request, error) if is_unrouted else internal_error()
        if render_error_page is not None and is_browser_request(request.scope):
            return render_error_page(request, failure)
        return error_response(failure, request.scope[REQUEST_ID_KEY])

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
            SkillhallError: _respond_with_json,
            OSError: _respond_with_json,
            RequestValidationError: _respond_with_json,
            HTTPException: respond_with_page,
            Exception: respond_with_page,
        },
    )
    app.state.pools = WorkerPools()  # `build_app` sets the configured ones
    for router in routers:
        for route in router.routes:
            action_of(vars(route)["endpoint"])  # raises an error if it names none
        app.include_router(router)
    for path in OPENAPI_PATHS:
        app.add_api_route(path, _get_openapi, include_in_schema=False)
    return app


async def _respond_with_json(request: Request, error: Exception) -> Response:
    """Return the JSON response to an error of a REST route."""
    if isinstance(error, RequestValidationError):
        problem = error.errors()[0]
        value = problem["input"]
        if isinstance(value, str) and value.strip():
            # The message of a validator, without pydantic's prefix.
            message = str(problem.get("ctx", {}).get("error", problem["msg"]))
        else:
            message = f"the parameter {problem['loc'][1]!r} is empty"
        error = HttpError("invalid_argument", message)
    assert isinstance(error, SkillhallError | OSError)  # noqa: S101 - as registered
    return error_response(error, request.scope[REQUEST_ID_KEY])


def _routing_error(request: Request, error: Exception) -> HttpError:
    """Return the error for an unknown route or an unsupported method."""
    if not isinstance(error, HTTPException) or error.status_code != _METHOD_NOT_ALLOWED:
        return HttpError("not_found", "route not found")
    # Starlette names only the methods of the first route with this path.
    scopes = {method: {**request.scope, "method": method} for method in _METHODS}
    allowed = {
        method
        for method, scope in scopes.items()
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)
    }
    methods = ", ".join(sorted(allowed | {"HEAD"} if "GET" in allowed else allowed))
    message = f"method not allowed; use {methods}"
    headers = ((b"allow", methods.encode("latin-1")),)
    return HttpError("method_not_allowed", message, headers=headers)


@needs(None)
async def _get_openapi(request: Request) -> Response:
    """Return the OpenAPI document, without an envelope."""
    state = request.app.state
    if not hasattr(state, "openapi"):
        state.openapi = encode_json(build_openapi_document(request.app))
    return Response(state.openapi, headers=NO_CACHE, media_type="application/json")


def build_openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the document of an app's routes, with their error schemas and no others."""
    document = app.openapi()
    components = document.setdefault("components", {})
    schemes = components.setdefault("securitySchemes", {})
    schemes[BEARER_SCHEME] = {"type": "http", "scheme": "bearer"}
    schemas = components.setdefault("schemas", {})
    schemas.update(error_schemas())
    for name in _FASTAPI_ERROR_SCHEMAS:
        schemas.pop(name, None)
    for operation in (item for path in document["paths"].values() for item in path.values()):
        if _FASTAPI_ERROR_SCHEMAS[0] in str(operation["responses"].get("422")):
            del operation["responses"]["422"]
    return document


class HeadAsGet:
    """Routes HEAD like GET; uvicorn drops the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; a HEAD request becomes a GET request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        get_scope = {**scope, "method": "GET", HEAD_REQUEST_KEY: True}
        await self._app(get_scope, receive, send)
        # The metrics read the route from the original scope.
        scope.update({key: get_scope[key] for key in (ROUTE_KEY, "route") if key in get_scope})
