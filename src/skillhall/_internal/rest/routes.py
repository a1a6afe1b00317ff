"""Routes of prompts, health and webhooks, with their OpenAPI descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.responses import Response

from skillhall._internal.rest.endpoint import Handler, make_endpoint, make_summary
from skillhall._internal.rest.prompt_handlers import PROMPTS_PATH, TOOLS_PATH
from skillhall._internal.rest.requests import RefreshRequest, RenderPromptRequest, UploadRequest
from skillhall._internal.rest.responses import (
    BEARER_SCHEME,
    BODY_ERRORS,
    COMMON_ERRORS,
    NAME_PARAMETER,
    NOT_MODIFIED,
    SOURCE_ERRORS,
    SOURCE_PARAMETERS,
    IgnoredEventResponse,
    IngestResponse,
    LivenessResponse,
    PromptListResponse,
    PromptResponse,
    PushResponse,
    ReadinessResponse,
    RefreshResponse,
    ToolListResponse,
    build_responses,
    describe_error,
    describe_request_body,
    envelope_model,
)
from skillhall._internal.rest.webhooks import WEBHOOK_PATH

if TYPE_CHECKING:
    from skillhall._internal.rest.health import HealthHandlers
    from skillhall._internal.rest.prompt_handlers import PromptHandlers
    from skillhall._internal.rest.webhooks import WebhookHandlers

# The empty entry makes the token optional: a local server may have none.
SECURITY: list[dict[str, list[str]]] = [{BEARER_SCHEME: []}, {}]
_PUBLIC_ERRORS = {code: text for code, text in COMMON_ERRORS.items() if code not in (401, 429)}


def build_prompt_router(handlers: PromptHandlers) -> APIRouter:
    """Return the routes of prompts."""
    router = APIRouter(tags=["prompts"])
    listed = build_responses(PromptListResponse, SOURCE_ERRORS)
    listed[304] = NOT_MODIFIED
    extra = {"parameters": SOURCE_PARAMETERS, "security": SECURITY}
    add_route(router, "GET", PROMPTS_PATH, handlers.list_prompts, listed, extra)
    add_route(
        router,
        "POST",
        PROMPTS_PATH + "/refresh",
        handlers.refresh_prompts,
        build_responses(RefreshResponse, SOURCE_ERRORS, BODY_ERRORS),
        {**extra, "requestBody": describe_request_body(RefreshRequest, required=False)},
    )
    add_route(
        router,
        "POST",
        PROMPTS_PATH + "/sources",
        handlers.upload_source,
        build_responses(IngestResponse, SOURCE_ERRORS, BODY_ERRORS),
        {**extra, "requestBody": describe_request_body(UploadRequest, required=True)},
    )
    add_route(
        router,
        "POST",
        PROMPTS_PATH + "/{name:path}",
        handlers.render_prompt,
        build_responses(PromptResponse, SOURCE_ERRORS, BODY_ERRORS, {404: "Route not found."}),
        {
            "parameters": [NAME_PARAMETER, *SOURCE_PARAMETERS],
            "security": SECURITY,
            "requestBody": describe_request_body(RenderPromptRequest, required=False),
        },
    )
    add_route(
        router,
        "GET",
        TOOLS_PATH,
        handlers.list_tools,
        build_responses(ToolListResponse),
        {"security": SECURITY},
    )
    return router


def build_health_router(handlers: HealthHandlers) -> APIRouter:
    """Return the routes of probes and metrics."""
    router = APIRouter(tags=["health"])
    not_ready = {503: "The sources are not loaded yet, or the database is unavailable."}
    add_route(
        router,
        "GET",
        "/healthz",
        handlers.get_liveness,
        _public_responses(LivenessResponse),
        {"security": []},
    )
    add_route(
        router,
        "GET",
        "/readyz",
        handlers.get_readiness,
        _public_responses(ReadinessResponse, not_ready),
        {"security": []},
    )
    metrics: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "Metrics in the Prometheus text format.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    }
    metrics |= {code: describe_error(code, text) for code, text in COMMON_ERRORS.items()}
    add_route(router, "GET", "/metrics", handlers.get_metrics, metrics, {"security": SECURITY})
    return router


def build_webhook_router(handlers: WebhookHandlers) -> APIRouter:
    """Return the route of the webhook."""
    router = APIRouter(tags=["webhooks"])
    errors = {
        400: "The request body is not a valid push.",
        401: "Signature missing or invalid.",
        404: "No webhook secret is configured.",
        408: BODY_ERRORS[408],
        413: BODY_ERRORS[413],
        429: "Too many invalid signatures from this address. See Retry-After.",
    }
    responses = _public_responses(PushResponse, errors, status=202)
    responses[200] = {
        "model": envelope_model(IgnoredEventResponse),
        "description": IgnoredEventResponse.__doc__,
    }
    body = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
    extra = {"security": [], "requestBody": body, "parameters": [_SIGNATURE_PARAMETER]}
    add_route(router, "POST", WEBHOOK_PATH, handlers.receive_push, responses, extra)
    return router


_SIGNATURE_PARAMETER: dict[str, Any] = {
    "name": "X-Hub-Signature-256",
    "in": "header",
    "description": "HMAC-SHA256 of the body. GitLab sends the secret in X-Gitlab-Token instead.",
    "schema": {"type": "string"},
}


def _public_responses(
    response_model: Any,  # noqa: ANN401 - a model class
    *errors: dict[int, str],
    status: int = 200,
) -> dict[int | str, dict[str, Any]]:
    responses = build_responses(response_model, *errors, status=status)
    codes = {status}.union(_PUBLIC_ERRORS, *errors)
    return {code: response for code, response in responses.items() if code in codes}


def add_route(  # noqa: PLR0913, PLR0917 - the properties of a route
    router: APIRouter,
    method: str,
    path: str,
    handler: Handler,
    responses: dict[int | str, dict[str, Any]],
    openapi_extra: dict[str, Any],
) -> None:
    """Add a route. The first entry of `responses` is the success status."""
    success = next(code for code in responses if isinstance(code, int))
    router.add_api_route(
        path,
        make_endpoint(handler),
        methods=[method],
        status_code=success,
        response_class=Response,
        response_model=None,
        responses=responses,
        openapi_extra=openapi_extra,
        summary=make_summary(handler),
        description=handler.__doc__ or "",
    )
