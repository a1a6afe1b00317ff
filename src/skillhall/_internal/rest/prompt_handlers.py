"""Handlers for prompts."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.response import (
    JSON_HEADERS,
    ByteResponse,
    encode_json,
    success_response,
)
from skillhall._internal.policy.skipped_items import skipped_data
from skillhall._internal.prompts.prompt_model import SourceSelector, Upload, UploadedFile
from skillhall._internal.rest.endpoint import FastRoute
from skillhall._internal.rest.etag import etag_matches
from skillhall._internal.rest.gzip_cache import GzipCache
from skillhall._internal.rest.requests import (
    RefreshRequest,
    RenderPromptRequest,
    UploadRequest,
    parse_model,
)
from skillhall._internal.settings import Secret
from skillhall.errors import PromptNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.http.request import HttpRequest
    from skillhall._internal.http.response import Headers
    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.prompts.prompt_snapshot import PromptSnapshot
    from skillhall._internal.prompts.service import PromptService

PROMPTS_PATH = "/api/v1/prompts"
MAX_UPLOAD_BYTES = 512 * 1024  # of the request body
TOOLS_PATH = "/api/v1/tools"
GIT_TOKEN_HEADER = b"x-skillhall-git-token"
DOT_AI_GIT_TOKEN_HEADER = b"x-dot-ai-git-token"  # sent by clients of dot-ai

_CONFIGURED_SOURCE = SourceSelector()
_NO_VALUES: Mapping[str, str] = MappingProxyType({})
_PROMPTS_PATH_BYTES = PROMPTS_PATH.encode()
_PROMPT_PATH_PREFIX = _PROMPTS_PATH_BYTES + b"/"
_RESERVED_NAMES = (b"refresh", b"sources")
_SOURCE_PARAMETERS = ("repo", "path", "branch", "source")
_OPTIONAL_PARAMETERS = ("path", "branch")  # scripts also send them empty
_PLAIN_NAME = re.compile(rb"[A-Za-z0-9._~-]+")
_LIST_HEADERS: Headers = (
    *JSON_HEADERS,
    (b"cache-control", b"no-cache"),
    (b"vary", b"accept-encoding"),
)


class PromptHandlers:
    """Handlers over one prompt service."""

    def __init__(self, prompt_service: PromptService, workers: WorkerPool) -> None:
        self._prompt_service = prompt_service
        self._workers = workers
        self._gzip_cache = GzipCache()
        self._list_route = FastRoute(self.list_prompts, PROMPTS_PATH)
        self._prompt_route = FastRoute(self.render_prompt, PROMPTS_PATH + "/{name}")
        self._list_etags = _ListEtagCache()

    async def list_prompts(self, request: HttpRequest) -> ByteResponse:
        """List the prompts with their descriptions and arguments."""
        snapshot = await self._load_snapshot(parse_source_selector(request))
        cached = self._list_etags.get(snapshot)
        if etag_matches(request.header(b"if-none-match"), cached.etag):
            return cached.not_modified
        response = success_response(
            snapshot.list_json, request.request_id, headers=cached.headers, snapshot=snapshot
        )
        if not self._gzip_cache.should_compress(request, response):
            return response
        if self._gzip_cache.has(snapshot.digest):
            return self._gzip_cache.compress(response, snapshot.digest)
        return await self._workers.run(self._gzip_cache.compress, response, snapshot.digest)

    async def render_prompt(self, request: HttpRequest) -> ByteResponse:
        """Render a prompt with values for its arguments."""
        name = parse_prompt_name(request.scope["raw_path"])
        values = await _read_arguments(request) if request.has_body() else {}
        snapshot = await self._load_snapshot(parse_source_selector(request))
        if values or snapshot.summary(name).has_files:
            # Rendering and reading files can be slow.
            data = await self._workers.run(snapshot.prompt_json, name, values)
        else:
            data = snapshot.prompt_json(name)
        return success_response(data, request.request_id, snapshot=snapshot)

    async def refresh_prompts(self, request: HttpRequest) -> ByteResponse:
        """Fetch the newest version of a source."""
        body = parse_model(RefreshRequest, await request.json(empty={}))
        selector = parse_source_selector(request, body.non_blank_fields())
        snapshot = await self._workers.run(self._prompt_service.refresh, selector)
        data: dict[str, object] = {
            "refreshed": snapshot.stale is None,
            "promptsLoaded": len(snapshot.names),
            "source": snapshot.source,
            **skipped_data(snapshot.skipped),
        }
        if snapshot.stale is not None:
            data["reason"] = snapshot.stale.reason
        return success_response(encode_json(data), request.request_id, snapshot=snapshot)

    async def upload_source(self, request: HttpRequest) -> ByteResponse:
        """Upload files as a source."""
        parse_source_selector(request)  # rejects contradictory parameters
        body = parse_model(UploadRequest, await request.json(MAX_UPLOAD_BYTES))
        files = [UploadedFile(file.path, file.content, file.mode_bits) for file in body.files]
        upload = Upload(body.source, files, body.content_hash)
        report = await self._workers.run(self._prompt_service.ingest, upload)
        data: dict[str, object] = {"source": report.source}
        if report.content_hash:
            data["contentHash"] = report.content_hash
        data |= {"fileCount": report.file_count, "status": report.status}
        snapshot = await self._workers.run(
            self._prompt_service.snapshot, SourceSelector(source=body.source)
        )
        data |= skipped_data(snapshot.skipped)
        return success_response(encode_json(data), request.request_id)

    async def list_tools(self, request: HttpRequest) -> ByteResponse:
        """List the tools that can be called by REST. Always empty, for clients of dot-ai."""
        data = {"tools": [], "total": 0, "categories": [], "tags": []}
        return success_response(encode_json(data), request.request_id)

    def find_fast_route(self, method: str, path: bytes) -> FastRoute | None:
        """Return the fast route for the list or for a prompt with a plain name."""
        if method == "GET" and path == _PROMPTS_PATH_BYTES:
            return self._list_route
        if method == "POST" and path.startswith(_PROMPT_PATH_PREFIX):
            name = path[len(_PROMPT_PATH_PREFIX) :]
            if _PLAIN_NAME.fullmatch(name) and name not in _RESERVED_NAMES:
                return self._prompt_route
        return None

    async def _load_snapshot(self, selector: SourceSelector) -> PromptSnapshot:
        """Return the cached snapshot of a source, or load it in a worker thread."""
        snapshot = self._prompt_service.cached_snapshot(selector)
        if snapshot is None:
            snapshot = await self._workers.run(self._prompt_service.snapshot, selector)
        return snapshot


class _ListEtag(NamedTuple):
    """The ETag and the headers of a snapshot's list."""

    digest: str
    is_stale: bool
    etag: bytes
    headers: Headers
    not_modified: ByteResponse

    @classmethod
    def from_snapshot(cls, snapshot: PromptSnapshot) -> _ListEtag:
        """Build the ETag of a snapshot."""
        tag = _snapshot_etag(snapshot)
        headers: Headers = (*_LIST_HEADERS, (b"etag", tag))
        is_stale = snapshot.stale is not None
        return cls(snapshot.digest, is_stale, tag, headers, ByteResponse(304, headers[1:]))

    def is_for(self, snapshot: PromptSnapshot) -> bool:
        """Whether the ETag is that of the snapshot."""
        return self.digest == snapshot.digest and self.is_stale == (snapshot.stale is not None)


class _ListEtagCache:
    """Cache of the last ETag. Lists are requested more often than they change."""

    def __init__(self) -> None:
        self._last: _ListEtag | None = None

    def get(self, snapshot: PromptSnapshot) -> _ListEtag:
        """Return the ETag of a snapshot."""
        if self._last is None or not self._last.is_for(snapshot):
            self._last = _ListEtag.from_snapshot(snapshot)
        return self._last


def parse_source_selector(
    request: HttpRequest, body: Mapping[str, str] = _NO_VALUES
) -> SourceSelector:
    """Return the source named in the query or the body. Raises: HttpError."""
    token = request.header(GIT_TOKEN_HEADER) or request.header(DOT_AI_GIT_TOKEN_HEADER)
    if not (body or request.scope["query_string"]) and token is None:
        return _CONFIGURED_SOURCE
    query = request.read_query(_SOURCE_PARAMETERS, _OPTIONAL_PARAMETERS)
    if query and body:
        raise HttpError("invalid_argument", "name the source in the query or in the body, not both")
    fields = {**query, **body}
    if "source" in fields and len(fields) > 1:
        message = "source cannot be combined with repo, path or branch"
        raise HttpError("invalid_argument", message)
    secret = Secret(token.decode("latin-1")) if token else None
    return SourceSelector(**fields, token=secret)


def parse_prompt_name(raw_path: bytes) -> str:
    """Return the decoded name of the prompt in a path. Raises: HttpError, PromptNotFound."""
    encoded_name = raw_path[len(_PROMPT_PATH_PREFIX) :]
    if not raw_path.startswith(_PROMPT_PATH_PREFIX) or not encoded_name or b"/" in encoded_name:
        raise HttpError("not_found", "route not found")
    if b"%" not in encoded_name:
        return encoded_name.decode("latin-1")
    try:
        return unquote_to_bytes(encoded_name).decode("utf-8")
    except UnicodeDecodeError:
        raise PromptNotFound(encoded_name.decode("latin-1")) from None


async def _read_arguments(request: HttpRequest) -> Mapping[str, object]:
    return parse_model(RenderPromptRequest, await request.json(empty={})).arguments or {}


def _snapshot_etag(snapshot: PromptSnapshot) -> bytes:
    # Weak, since the timestamp and the request id differ in every response.
    suffix = "-stale" if snapshot.stale else ""
    return f'W/"{snapshot.digest}{suffix}"'.encode("ascii", "replace")
