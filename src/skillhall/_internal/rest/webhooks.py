"""Webhook for pushes, sent by GitHub, Gitea and GitLab."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.http.credentials import FailedSignIns, client_address
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import MAX_JSON_BYTES, parse_body
from skillhall._internal.http.response import encode_json, success_response

if TYPE_CHECKING:
    from skillhall._internal.http.request import HttpRequest
    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.prompts.service import PromptService
    from skillhall._internal.settings import Secret

WEBHOOK_PATH = "/api/v1/webhooks/git"

_EVENT_HEADERS = (b"x-github-event", b"x-gitea-event", b"x-gitlab-event")
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


class Push(NamedTuple):
    """A push: the URLs of the repository and the branch."""

    urls: tuple[str, ...]
    branch: str


class WebhookHandlers:
    """Handler of the webhook. A signature authenticates the git host."""

    def __init__(
        self, prompt_service: PromptService, workers: WorkerPool, secret: Secret | None
    ) -> None:
        self._prompt_service = prompt_service
        self._workers = workers
        self._secret = secret.reveal().encode("utf-8") if secret else None
        self._failed_signatures = FailedSignIns("signatures")

    async def receive_push(self, request: HttpRequest) -> ByteResponse:
        """Receive a push and refresh its repository. Other events are ignored."""
        if self._secret is None:
            raise HttpError("not_found", "route not found")
        body = await request.body(MAX_JSON_BYTES)
        if not _is_signature_valid(request, body, self._secret):
            self._failed_signatures.record(client_address(request.scope))
            raise HttpError("unauthenticated", "signature missing or invalid")
        event = _event_name(request)
        push = parse_push(parse_body(body)) if event in _PUSH_EVENTS else None
        if push is None:
            return success_response(encode_json({"ignored": event}), request.request_id)
        known = await self._workers.run(self._prompt_service.handle_push, push.urls, push.branch)
        data = encode_json({"accepted": True, "known": known})
        return success_response(data, request.request_id, status=202)


def parse_push(payload: object) -> Push | None:
    """Return the push to a branch; None for tags and deleted branches. Raises: HttpError."""
    if not isinstance(payload, dict):
        raise HttpError("invalid_argument", "a push must be a JSON object")
    ref = payload.get("ref")
    if not isinstance(ref, str) or payload.get("deleted") is True:
        return None
    if not ref.startswith(_BRANCH_PREFIX):
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
    return Push(tuple(urls), ref.removeprefix(_BRANCH_PREFIX))


def _is_signature_valid(request: HttpRequest, body: bytes, secret: bytes) -> bool:
    token = request.header(b"x-gitlab-token")
    if token is not None:
        # Digests have equal lengths, so the comparison does not leak the length of the secret.
        return hmac.compare_digest(hashlib.sha256(token).digest(), hashlib.sha256(secret).digest())
    expected = b"sha256=" + hmac.new(secret, body, "sha256").hexdigest().encode("ascii")
    return hmac.compare_digest(request.header(b"x-hub-signature-256") or b"", expected)


def _event_name(request: HttpRequest) -> str:
    for name in _EVENT_HEADERS:
        event = request.header(name)
        if event is not None:
            return event.decode("latin-1").lower()[:64]
    return "none"
