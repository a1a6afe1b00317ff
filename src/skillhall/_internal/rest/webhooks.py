"""What git hosts tell: somebody pushed."""

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
    from skillhall._internal.prompts.prompt_model import PromptServiceProtocol
    from skillhall._internal.settings import Secret

WEBHOOK_PATH = "/api/v1/webhooks/git"

_EVENT_HEADERS = (b"x-github-event", b"x-gitea-event", b"x-gitlab-event")
_PUSH_EVENTS = ("push", "push hook")
_BRANCH_PREFIX = "refs/heads/"
# What GitHub, Gitea and GitLab call the addresses of a repository.
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
    """A push: the addresses of its repository, and the branch."""

    urls: tuple[str, ...]
    branch: str


class WebhookHandlers:
    """The call of git hosts; a signature says that it is theirs."""

    def __init__(
        self, prompt_service: PromptServiceProtocol, workers: WorkerPool, secret: Secret | None
    ) -> None:
        self._prompt_service = prompt_service
        self._workers = workers
        self._secret = secret.reveal().encode("utf-8") if secret else None
        self._failed_signatures = FailedSignIns("signatures")

    async def receive_push(self, request: HttpRequest) -> ByteResponse:
        """Note a push; everything else is only thanked for."""
        if self._secret is None:
            raise HttpError("not_found", "there is no such route")
        body = await request.body(MAX_JSON_BYTES)
        if not _is_signature_valid(request, body, self._secret):
            self._failed_signatures.record(client_address(request.scope))
            raise HttpError("unauthenticated", "the signature is missing or wrong")
        event = _event_name(request)
        push = parse_push(parse_body(body)) if event in _PUSH_EVENTS else None
        if push is None:
            return success_response(encode_json({"ignored": event}), request.request_id)
        known = await self._workers.run(self._prompt_service.handle_push, push.urls, push.branch)
        data = encode_json({"accepted": True, "known": known})
        return success_response(data, request.request_id, status=202)


def parse_push(payload: object) -> Push | None:
    """The push to a branch that a payload tells of; None for tags and deleted branches."""
    if not isinstance(payload, dict):
        raise HttpError("invalid_argument", "a push must be a JSON object")
    ref = payload.get("ref")
    if (
        not isinstance(ref, str)
        or not ref.startswith(_BRANCH_PREFIX)
        or payload.get("deleted") is True
    ):
        return None
    urls = [
        place[name]
        for place in (payload.get(key) for key in _REPOSITORY_KEYS)
        if isinstance(place, dict)
        for name in _URL_KEYS
        if isinstance(place.get(name), str)
    ]
    if not urls:
        raise HttpError("invalid_argument", "the push does not say of which repository it is")
    return Push(tuple(urls), ref.removeprefix(_BRANCH_PREFIX))


def _is_signature_valid(request: HttpRequest, body: bytes, secret: bytes) -> bool:
    token = request.header(b"x-gitlab-token")
    if token is not None:
        # Digests have one length, so that the time tells nothing about the secret's.
        given, wanted = hashlib.sha256(token).digest(), hashlib.sha256(secret).digest()
        return hmac.compare_digest(given, wanted)
    wanted_text = b"sha256=" + hmac.new(secret, body, "sha256").hexdigest().encode("ascii")
    return hmac.compare_digest(request.header(b"x-hub-signature-256") or b"", wanted_text)


def _event_name(request: HttpRequest) -> str:
    for name in _EVENT_HEADERS:
        event = request.header(name)
        if event is not None:
            return event.decode("latin-1").lower()[:64]
    return "none"
