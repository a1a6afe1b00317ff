"""Webhook for pushes, sent by GitHub, Gitea and GitLab."""

from __future__ import annotations

import hashlib
import hmac
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from skillhall._internal.http.credentials import FailedSignIns, client_address
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import MAX_JSON_BYTES, parse_json, read_body
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.http.thread_pool import Work
from skillhall._internal.prompt_server.service import PromptService
from skillhall._internal.rest import responses
from skillhall._internal.rest.api_route import ApiRoute, run_blocking
from skillhall._internal.rest.responses import (
    BUSY_ERRORS,
    PUBLIC,
    Responses,
    describe_errors,
    envelope,
)
from skillhall._internal.rest.route_parameters import OptionalBlankText, app_state
from skillhall._internal.settings import Secret

WEBHOOK_PATH = "/api/v1/webhooks/git"

_EVENT_HEADERS = ("x-github-event", "x-gitea-event", "x-gitlab-event")
_PUSH_EVENTS = ("push", "push hook")
_BRANCH_PREFIX = "refs/heads/"
# Keys of the repository and its URLs in the payloads of GitHub, Gitea and GitLab.
_REPOSITORY_KEYS = ("repository", "project")
_URL_KEYS = (
    "clone_url",
    "ssh_url",
    "git_url",
    "html_url",
    "git_http_url",
    "git_ssh_url",
    "web_url",
)


class WebhookReceiver:
    """Verifies the signatures of git hosts and reports pushes to the prompt service."""

    def __init__(self, prompt_service: PromptService, secret: Secret | None) -> None:
        self.prompt_service = prompt_service
        self._secret = secret.reveal().encode("utf-8") if secret else None
        self._failed_signatures = FailedSignIns("signatures")

    async def read_signed_body(self, request: Request) -> bytes:
        """Return the body if its signature is valid. Raises: HttpError, ClientDisconnect."""
        if self._secret is None:
            raise HttpError("not_found", "route not found")
        body = await read_body(request, MAX_JSON_BYTES)
        if not _is_signature_valid(request, body, self._secret):
            self._failed_signatures.record(client_address(request.scope))
            raise HttpError("unauthenticated", "signature missing or invalid")
        return body


_IGNORED: Responses = {
    200: {
        "model": envelope(responses.IgnoredEventResponse),
        "description": responses.IgnoredEventResponse.__doc__,
    }
}
_ERRORS = describe_errors(
    {
        400: "The request body is not a valid push.",
        401: "Signature missing or invalid.",
        404: "No webhook secret is configured.",
        408: "Timed out reading the request body.",
        413: "Request body too large.",
        429: "Too many invalid signatures from this address. See Retry-After.",
    }
)
_BODY = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
router = APIRouter(tags=["webhooks"], route_class=ApiRoute)


@router.post(
    WEBHOOK_PATH,
    status_code=202,
    response_model=responses.PushResponse,
    responses=_IGNORED | _ERRORS | BUSY_ERRORS,
    openapi_extra={**PUBLIC, "requestBody": _BODY},
)
async def receive_push(
    request: Request,
    webhook: Annotated[WebhookReceiver, app_state("webhook")],
    _signature: Annotated[
        OptionalBlankText,
        Header(
            alias="X-Hub-Signature-256",
            description="HMAC-SHA256 of the body. "
            "GitLab sends the secret in X-Gitlab-Token instead.",
        ),
    ] = None,
) -> Response:
    """Receive a push and mark its repository for a refresh. Ignore other events."""
    body = await webhook.read_signed_body(request)
    sent = [request.headers[name] for name in _EVENT_HEADERS if name in request.headers]
    event = sent[0].lower()[:64] if sent else "none"
    push = _parse_push(parse_json(body)) if event in _PUSH_EVENTS else None
    if push is None:
        return SuccessResponse({"ignored": event})
    handle = partial(webhook.prompt_service.handle_push, *push)  # notifies the other servers
    known = await run_blocking(request, Work.STORE, handle)
    return SuccessResponse({"accepted": True, "known": known}, 202)


def _parse_push(payload: object) -> tuple[tuple[str, ...], str] | None:
    """Return the URLs and the branch of a push; None for tags and deleted branches.

    Raises: HttpError.
    """
    if not isinstance(payload, dict):
        raise HttpError("invalid_argument", "the payload of a push must be a JSON object")
    ref = payload.get("ref")
    is_branch = isinstance(ref, str) and ref.startswith(_BRANCH_PREFIX)
    if not is_branch or payload.get("deleted") is True:
        return None
    repositories = [payload.get(key) for key in _REPOSITORY_KEYS]
    urls = [
        repository[key]
        for repository in repositories
        if isinstance(repository, dict)
        for key in _URL_KEYS
        if isinstance(repository.get(key), str)
    ]
    if not urls:
        raise HttpError("invalid_argument", "the push has no repository URL")
    return tuple(urls), str(ref).removeprefix(_BRANCH_PREFIX)


def _is_signature_valid(request: Request, body: bytes, secret: bytes) -> bool:
    token = request.headers.get("x-gitlab-token")
    if token is not None:
        # Digests have equal lengths, so the comparison does not leak the length of the secret.
        sent = hashlib.sha256(token.encode("latin-1")).digest()
        return hmac.compare_digest(sent, hashlib.sha256(secret).digest())
    expected = b"sha256=" + hmac.new(secret, body, "sha256").hexdigest().encode("ascii")
    signature = request.headers.get("x-hub-signature-256", "")
    return hmac.compare_digest(signature.encode("latin-1"), expected)
