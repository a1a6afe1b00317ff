"""The routes, each with all that it may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.responses import Response

from skillhall._internal.rest.endpoint import Handler, make_endpoint
from skillhall._internal.rest.prompt_handlers import PROMPTS_PATH, TOOLS_PATH
from skillhall._internal.rest.requests import RefreshRequest, RenderPromptRequest, UploadRequest
from skillhall._internal.rest.responses import (
    BEARER_SCHEME,
    BODY_ERRORS,
    COMMON_ERRORS,
    NAME_PARAMETER,
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

SECURITY: list[dict[str, list[str]]] = [
    {BEARER_SCHEME: []},
    {},
]  # a server on this machine may have no token
_PUBLIC_ERRORS = {code: text for code, text in COMMON_ERRORS.items() if code not in (401, 429)}


def build_prompt_router(handlers: PromptHandlers) -> APIRouter:
    """The routes of the prompt repository."""
    router = APIRouter(tags=["prompts"])
    listed = build_responses(PromptListResponse, SOURCE_ERRORS)
    listed[304] = {"description": "Nothing has changed since the ETag in If-None-Match."}
    asked = {"parameters": SOURCE_PARAMETERS, "security": SECURITY}
    add_route(router, "GET", PROMPTS_PATH, handlers.list_prompts, listed, asked)
    add_route(
        router,
        "POST",
        PROMPTS_PATH + "/refresh",
        handlers.refresh_prompts,
        build_responses(RefreshResponse, SOURCE_ERRORS, BODY_ERRORS),
        {**asked, "requestBody": describe_request_body(RefreshRequest, required=False)},
    )
    add_route(
        router,
        "POST",
        PROMPTS_PATH + "/sources",
        handlers.ingest_source,
        build_responses(IngestResponse, SOURCE_ERRORS, BODY_ERRORS),
        {**asked, "requestBody": describe_request_body(UploadRequest, required=True)},
    )
    add_route(
        router,
        "POST",
        PROMPTS_PATH + "/{name:path}",
        handlers.get_prompt,
        build_responses(
            PromptResponse, SOURCE_ERRORS, BODY_ERRORS, {404: "There is no such route."}
        ),
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
    """The routes of those who watch."""
    router = APIRouter(tags=["health"])
    not_ready = {503: "Nothing can be handed out yet, or the database cannot be used."}
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
    figures: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "The figures, as Prometheus reads them.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    }
    figures |= {code: describe_error(code, text) for code, text in COMMON_ERRORS.items()}
    add_route(router, "GET", "/metrics", handlers.get_metrics, figures, {"security": SECURITY})
    return router


def build_webhook_router(handlers: WebhookHandlers) -> APIRouter:
    """The route for git hosts."""
    router = APIRouter(tags=["webhooks"])
    why = {
        400: "The signed body is not a push.",
        401: "The signature is missing or wrong.",
        404: "No secret is configured.",
        408: BODY_ERRORS[408],
        413: BODY_ERRORS[413],
        429: "Too many wrong signatures came from this address; Retry-After says how long to wait.",
    }
    described = _public_responses(PushResponse, why, status=202)
    described[200] = {
        "model": envelope_model(IgnoredEventResponse),
        "description": IgnoredEventResponse.__doc__,
    }
    body = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
    extra = {"security": [], "requestBody": body, "parameters": [_signature_parameter()]}
    add_route(router, "POST", WEBHOOK_PATH, handlers.receive_push, described, extra)
    return router


def _signature_parameter() -> dict[str, Any]:
    description = "HMAC-SHA256 of the body; GitLab sends the secret in X-Gitlab-Token instead."
    schema = {"type": "string"}
    name = "X-Hub-Signature-256"
    return {"name": name, "in": "header", "description": description, "schema": schema}


def _public_responses(
    response_model: Any,  # noqa: ANN401 - a model's class
    *errors: dict[int, str],
    status: int = 200,
) -> dict[int | str, dict[str, Any]]:
    described = build_responses(response_model, *errors, status=status)
    told = {code for group in (_PUBLIC_ERRORS, *errors) for code in group}
    return {code: text for code, text in described.items() if code == status or code in told}


def add_route(  # noqa: PLR0913, PLR0917 - what a route has
    router: APIRouter,
    method: str,
    path: str,
    handler: Handler,
    responses: dict[int | str, dict[str, Any]],
    openapi_extra: dict[str, Any],
) -> None:
    """One route with all that it may answer."""
    first = next(code for code in responses if isinstance(code, int))
    router.add_api_route(
        path,
        make_endpoint(handler),
        methods=[method],
        status_code=first,
        response_class=Response,
        response_model=None,
        responses=responses,
        openapi_extra=openapi_extra,
        description=handler.__doc__ or "",
    )
