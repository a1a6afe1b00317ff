"""What git hosts tell: somebody pushed."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.http.credentials import Failures, address_of
from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.request import MAX_JSON, parse_body
from skillhall._internal.http.response import encoded, success

if TYPE_CHECKING:
    from skillhall._internal.http.request import Exchange
    from skillhall._internal.http.response import Answer
    from skillhall._internal.http.thread_pool import Blocking
    from skillhall._internal.prompts.prompt_model import Counter
    from skillhall._internal.settings import Secret

WEBHOOK = "/api/v1/webhooks/git"

_EVENTS = (b"x-github-event", b"x-gitea-event", b"x-gitlab-event")
_PUSHES = ("push", "push hook")
_BRANCHES = "refs/heads/"
# What GitHub, Gitea and GitLab call the addresses of a repository.
_PLACES = ("repository", "project")
_ADDRESSES = (
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


class WebhookCalls:
    """The call of git hosts; a signature says that it is theirs."""

    def __init__(self, counter: Counter, blocking: Blocking, secret: Secret | None) -> None:
        self._counter = counter
        self._blocking = blocking
        self._secret = secret.reveal().encode("utf-8") if secret else None
        self._failures = Failures("signatures")

    async def receive_push(self, exchange: Exchange) -> Answer:
        """Note a push; everything else is only thanked for."""
        if self._secret is None:
            raise Refused("not_found", "there is no such route")
        body = await exchange.body(MAX_JSON)
        if not _is_signed(exchange, body, self._secret):
            self._failures.note(address_of(exchange.scope))
            raise Refused("unauthenticated", "the signature is missing or wrong")
        event = _event(exchange)
        push = push_in(parse_body(body)) if event in _PUSHES else None
        if push is None:
            return success(encoded({"ignored": event}), exchange.request_id)
        known = await self._blocking.run(self._counter.pushed, push.urls, push.branch)
        data = encoded({"accepted": True, "known": known})
        return success(data, exchange.request_id, status=202)


def push_in(payload: object) -> Push | None:
    """The push to a branch that a payload tells of; None for tags and deleted branches."""
    if not isinstance(payload, dict):
        raise Refused("invalid_argument", "a push must be a JSON object")
    ref = payload.get("ref")
    if not isinstance(ref, str) or not ref.startswith(_BRANCHES) or payload.get("deleted") is True:
        return None
    urls = [
        place[name]
        for place in (payload.get(key) for key in _PLACES)
        if isinstance(place, dict)
        for name in _ADDRESSES
        if isinstance(place.get(name), str)
    ]
    if not urls:
        raise Refused("invalid_argument", "the push does not say of which repository it is")
    return Push(tuple(urls), ref.removeprefix(_BRANCHES))


def _is_signed(exchange: Exchange, body: bytes, secret: bytes) -> bool:
    token = exchange.header(b"x-gitlab-token")
    if token is not None:
        # Digests have one length, so that the time tells nothing about the secret's.
        given, wanted = hashlib.sha256(token).digest(), hashlib.sha256(secret).digest()
        return hmac.compare_digest(given, wanted)
    wanted_text = b"sha256=" + hmac.new(secret, body, "sha256").hexdigest().encode("ascii")
    return hmac.compare_digest(exchange.header(b"x-hub-signature-256") or b"", wanted_text)


def _event(exchange: Exchange) -> str:
    for name in _EVENTS:
        event = exchange.header(name)
        if event is not None:
            return event.decode("latin-1").lower()[:64]
    return "none"
