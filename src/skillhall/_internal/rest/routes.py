"""The routes, each with all that it may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.responses import Response

from skillhall._internal.rest.endpoint import Call, endpoint
from skillhall._internal.rest.prompt_handlers import PROMPTS, TOOLS
from skillhall._internal.rest.requests import PromptBody, RefreshBody, UploadBody
from skillhall._internal.rest.responses import (
    BEARER,
    BODY,
    GUARDED,
    NAME_PARAMETER,
    SOURCE,
    SOURCE_PARAMETERS,
    AliveData,
    IgnoredData,
    IngestData,
    ListData,
    PromptData,
    PushData,
    ReadyData,
    RefreshData,
    ToolsData,
    answer_model,
    body_of,
    error,
    responses,
)
from skillhall._internal.rest.webhooks import WEBHOOK

if TYPE_CHECKING:
    from skillhall._internal.rest.health import HealthCalls
    from skillhall._internal.rest.prompt_handlers import PromptCalls
    from skillhall._internal.rest.webhooks import WebhookCalls

SECURED: list[dict[str, list[str]]] = [
    {BEARER: []},
    {},
]  # a server on this machine may have no token
_OPEN = {code: text for code, text in GUARDED.items() if code not in (401, 429)}


def prompt_router(calls: PromptCalls) -> APIRouter:
    """The routes of the prompt repository."""
    router = APIRouter(tags=["prompts"])
    listed = responses(ListData, SOURCE)
    listed[304] = {"description": "Nothing has changed since the ETag in If-None-Match."}
    asked = {"parameters": SOURCE_PARAMETERS, "security": SECURED}
    add_route(router, "GET", PROMPTS, calls.list_prompts, listed, asked)
    add_route(
        router,
        "POST",
        PROMPTS + "/refresh",
        calls.refresh_prompts,
        responses(RefreshData, SOURCE, BODY),
        {**asked, "requestBody": body_of(RefreshBody, required=False)},
    )
    add_route(
        router,
        "POST",
        PROMPTS + "/sources",
        calls.ingest_source,
        responses(IngestData, SOURCE, BODY),
        {**asked, "requestBody": body_of(UploadBody, required=True)},
    )
    add_route(
        router,
        "POST",
        PROMPTS + "/{name:path}",
        calls.one_prompt,
        responses(PromptData, SOURCE, BODY, {404: "There is no such route."}),
        {
            "parameters": [NAME_PARAMETER, *SOURCE_PARAMETERS],
            "security": SECURED,
            "requestBody": body_of(PromptBody, required=False),
        },
    )
    add_route(router, "GET", TOOLS, calls.list_tools, responses(ToolsData), {"security": SECURED})
    return router


def health_router(calls: HealthCalls) -> APIRouter:
    """The routes of those who watch."""
    router = APIRouter(tags=["health"])
    not_ready = {503: "Nothing can be handed out yet, or the database cannot be used."}
    add_route(router, "GET", "/healthz", calls.alive, _without_token(AliveData), {"security": []})
    add_route(
        router,
        "GET",
        "/readyz",
        calls.ready,
        _without_token(ReadyData, not_ready),
        {"security": []},
    )
    figures: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "The figures, as Prometheus reads them.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    }
    figures |= {code: error(code, text) for code, text in GUARDED.items()}
    add_route(router, "GET", "/metrics", calls.figures, figures, {"security": SECURED})
    return router


def webhook_router(calls: WebhookCalls) -> APIRouter:
    """The route for git hosts."""
    router = APIRouter(tags=["webhooks"])
    why = {
        400: "The signed body is not a push.",
        401: "The signature is missing or wrong.",
        404: "No secret is configured.",
        408: BODY[408],
        413: BODY[413],
        429: "Too many wrong signatures came from this address; Retry-After says how long to wait.",
    }
    described = _without_token(PushData, why, status=202)
    described[200] = {"model": answer_model(IgnoredData), "description": IgnoredData.__doc__}
    body = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
    extra = {"security": [], "requestBody": body, "parameters": [_signature()]}
    add_route(router, "POST", WEBHOOK, calls.receive_push, described, extra)
    return router


def _signature() -> dict[str, Any]:
    description = "HMAC-SHA256 of the body; GitLab sends the secret in X-Gitlab-Token instead."
    schema = {"type": "string"}
    name = "X-Hub-Signature-256"
    return {"name": name, "in": "header", "description": description, "schema": schema}


def _without_token(
    data: Any,  # noqa: ANN401 - a model's class
    *why: dict[int, str],
    status: int = 200,
) -> dict[int | str, dict[str, Any]]:
    described = responses(data, *why, status=status)
    told = {code for group in (_OPEN, *why) for code in group}
    return {code: text for code, text in described.items() if code == status or code in told}


def add_route(  # noqa: PLR0913, PLR0917 - what a route has
    router: APIRouter,
    method: str,
    path: str,
    call: Call,
    described: dict[int | str, dict[str, Any]],
    extra: dict[str, Any],
) -> None:
    """One route with all that it may answer."""
    first = next(code for code in described if isinstance(code, int))
    router.add_api_route(
        path,
        endpoint(call),
        methods=[method],
        status_code=first,
        response_class=Response,
        response_model=None,
        responses=described,
        openapi_extra=extra,
        description=call.__doc__ or "",
    )
