"""Responses with prompts, and the shortcut for the most frequent requests."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from skillhall._internal.http.access import check_action
from skillhall._internal.http.request import HEADERS_KEY, ROUTE_KEY, accepts_gzip
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.http.thread_pool import Work, WorkerPools
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.prompt_server.prompt_model import SourceSelector
from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot
from skillhall._internal.prompt_server.service import PromptService
from skillhall._internal.rest.etag import NO_CACHE, etag_matches
from skillhall._internal.rest.gzip_cache import MIN_COMPRESSED_BYTES, GzipCache
from skillhall.errors import SkillhallError

PROMPTS_PATH = "/api/v1/prompts"
GIT_TOKEN_HEADERS = ("X-Skillhall-Git-Token", "X-Dot-AI-Git-Token")  # the second is dot-ai's
_CONFIGURED_SOURCE = SourceSelector()
_LIST_PATH = PROMPTS_PATH.encode()
_PROMPT_PATH = re.compile(rb"/api/v1/prompts/(?!(?:refresh|sources)$)([A-Za-z0-9._~-]+)")
# Requests with one of these headers take the regular route.
_SLOW_HEADERS = {name.lower().encode() for name in GIT_TOKEN_HEADERS} | {b"transfer-encoding"}


class PromptResponder:
    """Builds responses from the snapshots of one prompt service."""

    def __init__(self, service: PromptService, pools: WorkerPools | None = None) -> None:
        self.service = service
        self._pools = pools or WorkerPools()
        self._gzip_cache = GzipCache()
        self._last_list: _ListHeaders | None = None  # requested more often than it changes

    async def load_snapshot(self, selector: SourceSelector, client: str) -> PromptSnapshot:
        """Return the cached snapshot of a source, or load it in a worker thread."""
        snapshot = self.service.cached_snapshot(selector)
        if snapshot is not None:
            return snapshot
        # The service waits only briefly for the configured source.
        work = Work.STORE if selector.source else Work.DISK
        if selector.names_repository:
            work = Work.FETCH
        return await self._pools[work].run_for(client, partial(self.service.snapshot, selector))

    async def list_prompts(
        self, snapshot: PromptSnapshot, if_none_match: str | None, accept_encoding: str
    ) -> Response:
        """Return the list of prompts, compressed if the client accepts it, or 304."""
        cached = self._last_list
        if cached is None or cached.key != (snapshot.digest, snapshot.stale is not None):
            cached = self._last_list = _ListHeaders.from_snapshot(snapshot)
        if etag_matches(if_none_match, cached.etag):
            return cached.not_modified
        data, digest = snapshot.list_json, snapshot.digest
        if len(data) < MIN_COMPRESSED_BYTES or not accepts_gzip(accept_encoding):
            return SuccessResponse(data, headers=cached.headers, snapshot=snapshot)
        response = _GzipResponse(data, headers=cached.headers, snapshot=snapshot)
        response.headers["content-encoding"] = "gzip"
        response.cache, response.digest = self._gzip_cache, digest
        if not self._gzip_cache.has(digest):
            await self._pools[Work.DISK].run(response.parts, "")  # fills the cache
        return response


class _ListHeaders(NamedTuple):
    """The ETag and the headers of a snapshot's list."""

    key: tuple[str, bool]  # the digest of the snapshot, and whether it is stale
    etag: str
    headers: dict[str, str]
    not_modified: Response

    @classmethod
    def from_snapshot(cls, snapshot: PromptSnapshot) -> _ListHeaders:
        """Build the headers for a snapshot."""
        is_stale = snapshot.stale is not None
        # Weak, since the timestamp and the request id differ in every response.
        etag = f'W/"{snapshot.digest}{"-stale" if is_stale else ""}"'
        etag = etag.encode("ascii", "replace").decode()
        headers = {**NO_CACHE, "vary": "accept-encoding", "etag": etag}
        not_modified = Response(status_code=304, headers=headers)
        return cls((snapshot.digest, is_stale), etag, headers, not_modified)


class _GzipResponse(SuccessResponse):
    """A list whose compressed data is cached."""

    cache: GzipCache
    digest: str

    def parts(self, request_id: str) -> tuple[bytes, ...]:
        """Return the compressed body in parts."""
        return self.cache.compress(super().parts(request_id), self.digest)


class PromptFastPath:
    """Middleware that answers the most frequent requests for prompts before FastAPI.

    These are requests for the list or for one prompt of the configured source, if its snapshot is
    cached. Everything else, errors included, takes the regular route.

    `python -m benchmarks serving` compares the requests per second with a bare Starlette route:
    list 0.83, one prompt 0.90, 304 1.90. FastAPI's dependencies cost more than these responses:
    without the fast path, the ratios are 0.72, 0.40 and 0.27. The benchmark requires 0.70, 0.70
    and 0.90.
    """

    def __init__(self, app: ASGIApp, responder: PromptResponder) -> None:
        self._app = app
        self._responder = responder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or pass it on."""
        response = None
        if scope["type"] == "http" and not scope["query_string"]:
            with suppress(SkillhallError, OSError):  # the regular route answers with the error
                response = await self._find_response(scope)
        await (response or self._app)(scope, receive, send)

    async def _find_response(self, scope: Scope) -> Response | None:
        method, path, headers = scope["method"], scope["raw_path"], scope[HEADERS_KEY]
        is_list = method == "GET" and path == _LIST_PATH
        match = _PROMPT_PATH.fullmatch(path) if method == "POST" else None
        if not (is_list or match) or not _SLOW_HEADERS.isdisjoint(headers):
            return None
        check_action(scope, Action.READ)  # as the routes do
        snapshot = self._responder.service.cached_snapshot(_CONFIGURED_SOURCE)
        if snapshot is None:
            return None
        if match is None:
            scope[ROUTE_KEY] = PROMPTS_PATH
            if_none_match = headers.get(b"if-none-match", b"").decode("latin-1")
            accepted = headers.get(b"accept-encoding", b"").decode("latin-1")
            return await self._responder.list_prompts(snapshot, if_none_match, accepted)
        name = match[1].decode("ascii")
        if headers.get(b"content-length", b"0") != b"0" or snapshot.summary(name).has_files:
            return None
        response = SuccessResponse(snapshot.prompt_json(name), snapshot=snapshot)
        scope[ROUTE_KEY] = PROMPTS_PATH + "/{name}"
        return response
