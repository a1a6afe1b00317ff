"""The calls of the prompt repository."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.response import JSON, Answer, encoded, success
from skillhall._internal.policy.skipped_items import skipped_data
from skillhall._internal.prompts.prompt_model import Asked, Upload, UploadedFile
from skillhall._internal.rest.endpoint import Hot
from skillhall._internal.rest.etag import matches
from skillhall._internal.rest.gzip_cache import Packed
from skillhall._internal.rest.requests import PromptBody, RefreshBody, UploadBody, checked
from skillhall._internal.settings import Secret
from skillhall.errors import PromptNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.http.request import Exchange
    from skillhall._internal.http.response import Headers
    from skillhall._internal.http.thread_pool import Blocking
    from skillhall._internal.prompts.prompt_model import Counter, PromptSnapshot

PROMPTS = "/api/v1/prompts"
MAX_UPLOAD = 512 * 1024  # bytes of the request's body
TOOLS = "/api/v1/tools"
GIT_TOKEN = b"x-skillhall-git-token"
GIT_TOKEN_OF_DOT_AI = b"x-dot-ai-git-token"  # what clients of the original server send

_CONFIGURED = Asked()
_NOTHING: Mapping[str, str] = MappingProxyType({})
_ALL = PROMPTS.encode()
_PREFIX = _ALL + b"/"
_RESERVED = (b"refresh", b"sources")
_SOURCE_NAMES = ("repo", "path", "branch", "source")
_MAY_BE_EMPTY = ("path", "branch")  # scripts send both, set or not
_PLAIN_NAME = re.compile(rb"[A-Za-z0-9._~-]+")
_LIST: Headers = (*JSON, (b"cache-control", b"no-cache"), (b"vary", b"accept-encoding"))


class PromptCalls:
    """The four calls, over one counter."""

    def __init__(self, counter: Counter, blocking: Blocking) -> None:
        self._counter = counter
        self._blocking = blocking
        self._packed = Packed()
        self._list = Hot(self.list_prompts, PROMPTS)
        self._one = Hot(self.one_prompt, PROMPTS + "/{name}")
        self._tagged = _Tagged()

    async def list_prompts(self, exchange: Exchange) -> Answer:
        """Every prompt's name, description and arguments."""
        asked = asked_by(exchange)
        snapshot = self._counter.current(asked) or await self._brought(asked)
        known = self._tagged.of(snapshot)
        if matches(exchange.header(b"if-none-match"), known.tag):
            return known.unchanged
        ready = success(
            snapshot.list_data(), exchange.request_id, headers=known.headers, snapshot=snapshot
        )
        if not self._packed.wants(exchange, ready):
            return ready
        if self._packed.has(snapshot.digest):
            return self._packed.packed(ready, snapshot.digest)
        return await self._blocking.run(self._packed.packed, ready, snapshot.digest)

    async def one_prompt(self, exchange: Exchange) -> Answer:
        """One prompt, with values for its arguments if there are any."""
        name = name_in(exchange.scope["raw_path"])
        values = await _values(exchange) if exchange.has_body() else {}
        asked = asked_by(exchange)
        snapshot = self._counter.current(asked) or await self._brought(asked)
        if values or snapshot.summary(name).has_files:
            # Files may have to be read, and many of them are large.
            data = await self._blocking.run(snapshot.get_data, name, values)
        else:
            data = snapshot.get_data(name)
        return success(data, exchange.request_id, snapshot=snapshot)

    async def refresh_prompts(self, exchange: Exchange) -> Answer:
        """The newest of a source, now."""
        body = checked(RefreshBody, await exchange.json(empty={}))
        asked = asked_by(exchange, body.given())
        snapshot = await self._blocking.run(self._counter.refresh, asked)
        data: dict[str, object] = {
            "refreshed": snapshot.stale is None,
            "promptsLoaded": len(snapshot.names),
            "source": snapshot.source,
            **skipped_data(snapshot.skipped),
        }
        if snapshot.stale is not None:
            data["reason"] = snapshot.stale.reason
        return success(encoded(data), exchange.request_id, snapshot=snapshot)

    async def ingest_source(self, exchange: Exchange) -> Answer:
        """Keep an upload."""
        asked_by(exchange)
        body = checked(UploadBody, await exchange.json(MAX_UPLOAD))
        files = [UploadedFile(one.path, one.content, one.mode_bits) for one in body.files]
        upload = Upload(body.source, files, body.content_hash)
        done = await self._blocking.run(self._counter.ingest, upload)
        data: dict[str, object] = {"source": done.source}
        if done.content_hash:
            data["contentHash"] = done.content_hash
        data |= {"fileCount": done.file_count, "status": done.status}
        snapshot = await self._blocking.run(self._counter.snapshot, Asked(source=body.source))
        data |= skipped_data(snapshot.skipped)
        return success(encoded(data), exchange.request_id)

    async def list_tools(self, exchange: Exchange) -> Answer:
        """The tools that can be called by REST: none. Clients of dot-ai ask before they go on."""
        data = {"tools": [], "total": 0, "categories": [], "tags": []}
        return success(encoded(data), exchange.request_id)

    def hot(self, method: str, path: bytes) -> Hot | None:
        """The call that is asked for most, if this is one of them."""
        if method == "GET" and path == _ALL:
            return self._list
        if method == "POST" and path.startswith(_PREFIX):
            name = path[len(_PREFIX) :]
            if _PLAIN_NAME.fullmatch(name) and name not in _RESERVED:
                return self._one
        return None

    async def _brought(self, asked: Asked) -> PromptSnapshot:
        """What the counter brings when nothing is at hand."""
        return await self._blocking.run(self._counter.snapshot, asked)


class _Known(NamedTuple):
    """What lists of one snapshot are known by."""

    digest: str
    is_stale: bool
    tag: bytes
    headers: Headers
    unchanged: Answer

    @classmethod
    def make(cls, snapshot: PromptSnapshot) -> _Known:
        """For that snapshot."""
        tag = _tag(snapshot)
        headers: Headers = (*_LIST, (b"etag", tag))
        is_stale = snapshot.stale is not None
        return cls(snapshot.digest, is_stale, tag, headers, Answer(304, headers[1:]))

    def is_of(self, snapshot: PromptSnapshot) -> bool:
        """Whether the snapshot says the same."""
        return self.digest == snapshot.digest and self.is_stale == (snapshot.stale is not None)


class _Tagged:
    """Remembers the last of them: lists are asked for more often than they change."""

    def __init__(self) -> None:
        self._last: _Known | None = None

    def of(self, snapshot: PromptSnapshot) -> _Known:
        """What is known of this one."""
        if self._last is None or not self._last.is_of(snapshot):
            self._last = _Known.make(snapshot)
        return self._last


def asked_by(exchange: Exchange, body: Mapping[str, str] = _NOTHING) -> Asked:
    """The source that a request is about, by its query or its body. Raises: Refused."""
    token = exchange.header(GIT_TOKEN) or exchange.header(GIT_TOKEN_OF_DOT_AI)
    if not (body or exchange.scope["query_string"]) and token is None:
        return _CONFIGURED
    query = exchange.query(_SOURCE_NAMES, _MAY_BE_EMPTY)
    if query and body:
        raise Refused("invalid_argument", "name the source in the query or in the body, not both")
    given = {**query, **body}
    if "source" in given and len(given) > 1:
        raise Refused("invalid_argument", "source goes without repo, path and branch")
    secret = Secret(token.decode("latin-1")) if token else None
    return Asked(**given, token=secret)


def name_in(raw_path: bytes) -> str:
    """The prompt's name in a path, decoded. Raises: Refused, PromptNotFound."""
    encoded_name = raw_path[len(_PREFIX) :]
    if not raw_path.startswith(_PREFIX) or not encoded_name or b"/" in encoded_name:
        raise Refused("not_found", "there is no such route")
    if b"%" not in encoded_name:
        return encoded_name.decode("latin-1")
    try:
        return unquote_to_bytes(encoded_name).decode("utf-8")
    except UnicodeDecodeError:
        raise PromptNotFound(encoded_name.decode("latin-1")) from None


async def _values(exchange: Exchange) -> Mapping[str, object]:
    return checked(PromptBody, await exchange.json(empty={})).arguments or {}


def _tag(snapshot: PromptSnapshot) -> bytes:
    """An ETag. It is a weak one: time and id differ in every answer."""
    mark = "-stale" if snapshot.stale else ""
    return f'W/"{snapshot.digest}{mark}"'.encode("ascii", "replace")
