"""Responses with ETags, and downloads."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from starlette.responses import Response

from skillhall._internal.http.request import accepts_gzip
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.rest.gzip_cache import MIN_COMPRESSED_BYTES
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill_store.collection import EncodedDocument

NO_CACHE = {"cache-control": "no-cache"}


def etag_matches(if_none_match: str | None, etag: str) -> bool:
    """Whether If-None-Match contains this ETag; weak and strong ETags count as equal."""
    if if_none_match is None:
        return False
    if if_none_match == etag:
        return True
    opaque = etag.removeprefix("W/")
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return opaque in tags or "*" in tags


def etag_response(data: bytes, headers: Mapping[str, str], if_none_match: str | None) -> Response:
    """Return the bytes with their digest as the ETag, or 304 if the client has them."""
    return document_response(EncodedDocument(data, sha256_hex(data)), headers, if_none_match)


def document_response(
    document: EncodedDocument,
    headers: Mapping[str, str],
    if_none_match: str | None,
    accept_encoding: str | None = None,
) -> Response:
    """Return a document with its digest as the ETag, or 304 if the client has it.

    A large document is compressed if `accept_encoding` allows it; None means never.
    """
    can_compress = accept_encoding is not None and len(document.data) >= MIN_COMPRESSED_BYTES
    is_compressed = can_compress and accepts_gzip(accept_encoding or "")
    # Different bytes need different ETags.
    etag = f'"{document.digest}-gzip"' if is_compressed else f'"{document.digest}"'
    cache_headers = {**NO_CACHE, "etag": etag}
    if can_compress:
        cache_headers["vary"] = "accept-encoding"
    if etag_matches(if_none_match, etag):
        return Response(status_code=304, headers=cache_headers)
    if is_compressed:
        encoding = {"content-encoding": "gzip"}
        return Response(document.gzipped, headers={**headers, **cache_headers, **encoding})
    return Response(document.data, headers={**headers, **cache_headers})


def versioned_response(data: Mapping[str, object], status_code: int = 200) -> Response:
    """Return a record with its version as the ETag."""
    headers = {**NO_CACHE, "etag": f'"{data["version"]}"'}
    return SuccessResponse(data, status_code, headers)


def download_headers(path: str) -> dict[str, str]:
    """Return headers that make browsers save untrusted content, never render it."""
    name = quote(path.rpartition("/")[2], safe="")
    return {
        "content-type": "application/octet-stream",
        "content-disposition": f"attachment; filename*=UTF-8''{name}",
    }
