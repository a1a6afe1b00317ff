"""One GET over https: from a checked address, under a size and a time, or not at all.

Every redirect is a request like the first. Proxies that the environment names are not used: they
would look the host up again.
"""

from __future__ import annotations

import re
import time
import zlib
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPMessage, HTTPResponse
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast
from urllib.parse import urljoin

from skillhall._internal.net.addresses import PUBLIC_ONLY
from skillhall._internal.net.connection import (
    Connection,
    ConnectionRequest,
    NetworkSettings,
    Timeout,
    open_connection,
    translate_network_errors,
)
from skillhall._internal.net.url import WebUrl, checked_characters
from skillhall._version import VERSION
from skillhall.errors import (
    RateLimited,
    SourceNotFound,
    SourceRejected,
    SourceUnavailable,
    TooLarge,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from skillhall._internal.net.addresses import AddressPolicy

# Told of the bytes that came so far, and of how many; 0 if the host does not say.
DownloadProgress: TypeAlias = "Callable[[int, int], None]"

MAX_REDIRECTS = 5  # redirects
DEFAULT_RETRY_AFTER = 60  # seconds, for a host that says "too many" and not until when
MAX_RETRY_AFTER = 86_400  # seconds; a day is as good as any longer time
_CHUNK = 64 * 1024  # bytes
_HEADER_VALUE = re.compile(r"[\x20-\x7e]{1,4096}")
_REDIRECTS = {301, 302, 303, 307, 308}
_NOT_FOUND_STATUSES = {404, 410}
_OK, _NOT_MODIFIED, _FORBIDDEN, _TOO_MANY_REQUESTS = 200, 304, 403, 429


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """What a request says besides its URL; the token stays with the first host."""

    etag: str = ""
    token: str = field(default="", repr=False)
    accept: str = "*/*"

    def __post_init__(self) -> None:
        """Refuse what would not fit on one line. Raises: ValueError, which repeats no secret."""
        for name in ("etag", "token", "accept"):
            value = getattr(self, name)
            if value and not _HEADER_VALUE.fullmatch(value):
                raise ValueError(f"the {name} is not a line of ASCII characters")


class FetchResult(NamedTuple):
    """What came; `url` is where from in the end, without a query."""

    data: bytes
    url: str
    etag: str
    content_type: str
    is_not_modified: bool = False  # the host says that the copy with our etag is still good


class FetchStream(NamedTuple):
    """What comes, while it comes: `chunks` can be read once, and only inside `open_stream`."""

    chunks: Iterator[bytes]
    url: str
    etag: str
    content_type: str
    length: int = 0  # bytes, if the host says how many
    is_not_modified: bool = False

    def iterate_with_progress(self, progress: DownloadProgress | None) -> Iterator[bytes]:
        """The chunks; `progress` is told of each."""
        count = 0
        for chunk in self.chunks:
            count += len(chunk)
            if progress is not None:
                progress(count, self.length)
            yield chunk


def fetch(  # noqa: PLR0913 - each has a default that suits most
    url: str,
    *,
    max_bytes: int,
    policy: AddressPolicy = PUBLIC_ONLY,
    options: FetchOptions = FetchOptions(),  # noqa: B008 - frozen
    network: NetworkSettings = NetworkSettings(),  # noqa: B008 - frozen
    progress: DownloadProgress | None = None,
) -> FetchResult:
    """The bytes at an https URL; http only to addresses that the policy allows by name.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, TooLarge.
    """
    opened = open_stream(url, max_bytes=max_bytes, policy=policy, options=options, network=network)
    with opened as stream:
        data = b"".join(stream.iterate_with_progress(progress))
        return FetchResult(
            data, stream.url, stream.etag, stream.content_type, stream.is_not_modified
        )


@contextmanager
def open_stream(
    url: str,
    *,
    max_bytes: int,
    policy: AddressPolicy = PUBLIC_ONLY,
    options: FetchOptions = FetchOptions(),  # noqa: B008 - frozen
    network: NetworkSettings = NetworkSettings(),  # noqa: B008 - frozen
) -> Iterator[FetchStream]:
    """The same as `fetch`, chunk by chunk: reading them raises what `fetch` would."""
    hop = _Hop(ConnectionRequest(WebUrl.parse(url), Timeout(network), network), options, max_bytes)
    for _ in range(MAX_REDIRECTS + 1):
        with _open_response(hop, policy) as response:
            judged = _handle_response(response, hop)
            if isinstance(judged, FetchStream):
                yield judged
                return
        hop = judged
    raise SourceUnavailable(hop.url.host, f"it redirects more than {MAX_REDIRECTS} times")


class _Hop(NamedTuple):
    connection_request: ConnectionRequest
    options: FetchOptions
    max_bytes: int

    @property
    def url(self) -> WebUrl:
        return self.connection_request.url


@contextmanager
def _open_response(hop: _Hop, policy: AddressPolicy) -> Iterator[HTTPResponse]:
    """The answer to one request, up to its body."""
    with translate_network_errors(hop.url.host):
        line = open_connection(hop.connection_request, policy)
    with closing(line):
        with translate_network_errors(hop.url.host):
            line.settimeout(hop.connection_request.timeout.next_timeout())
            line.sendall(_serialize_request(hop))
            response = _read_response_head(line, hop)
        with closing(response):
            yield response


def _serialize_request(hop: _Hop) -> bytes:
    url, request = hop.url, hop.options
    lines = [
        f"GET {url.target} HTTP/1.1",
        f"Host: {url.authority}",
        f"User-Agent: skillhall/{VERSION}",
        f"Accept: {request.accept}",
        "Accept-Encoding: identity",
        "Connection: close",
    ]
    if request.etag:
        lines.append(f"If-None-Match: {request.etag}")
    if request.token:
        lines.append(f"Authorization: Bearer {request.token}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _read_response_head(sock: socket.socket, hop: _Hop) -> HTTPResponse:
    """The answer up to its body. Raises: OSError, HTTPException, ValueError, TooLarge."""
    # Of a socket, http.client uses `makefile` only.
    wire = cast("socket.socket", Connection(sock, hop.connection_request, hop.max_bytes))
    response = HTTPResponse(wire, method="GET")
    try:
        response.begin()
    except BaseException:
        response.close()
        raise
    return response


def _handle_response(response: HTTPResponse, hop: _Hop) -> FetchStream | _Hop:
    status, url = response.status, hop.url
    if status in _REDIRECTS:
        return _next_hop(response.headers, hop)
    if status in _NOT_FOUND_STATUSES:
        raise SourceNotFound(url.place)
    if (seconds := _parse_retry_after(status, response.headers)) is not None:
        raise RateLimited(url.host, seconds)
    if status == _NOT_MODIFIED and hop.options.etag:
        return FetchStream(iter(()), url.place, hop.options.etag, "", is_not_modified=True)
    if status != _OK:
        raise SourceUnavailable(url.host, f"it answers with status {status}", status=status)
    etag, kind = (
        _read_header(response.headers, "ETag"),
        _read_header(response.headers, "Content-Type"),
    )
    return _open_body(response, hop)._replace(etag=etag, content_type=kind)


def _read_header(headers: HTTPMessage, name: str) -> str:
    value = str(headers.get(name, ""))
    return value if _HEADER_VALUE.fullmatch(value) else ""


def _next_hop(headers: HTTPMessage, hop: _Hop) -> _Hop:
    """The next request. The token stays with whom it was meant for."""
    url, place = hop.url, str(headers.get("Location", ""))
    if not place:
        raise SourceUnavailable(url.host, "it redirects to nowhere")
    following = _resolve_redirect(url, place)
    if url.scheme == "https" and following.scheme == "http":
        raise SourceRejected("scheme", following.place, "a redirect leads from https to http")
    request = hop.options
    if following.origin != url.origin:
        request = FetchOptions(request.etag, "", request.accept)
    return hop._replace(
        connection_request=hop.connection_request._replace(url=following), options=request
    )


def _resolve_redirect(url: WebUrl, place: str) -> WebUrl:
    try:
        return WebUrl.parse(urljoin(url.place, checked_characters(place)))
    except ValueError:  # urljoin has its own opinion of brackets
        raise SourceRejected("url", place, "a redirect leads to no URL") from None


def _parse_retry_after(status: int, headers: HTTPMessage) -> int | None:
    """The seconds that a host asks us to wait, if that is what its answer means."""
    if status not in (_FORBIDDEN, _TOO_MANY_REQUESTS):
        return None
    now = _parse_http_date(headers.get("Date")) or time.time()
    retry = str(headers.get("Retry-After", ""))
    if retry:
        return _clamp_wait(
            int(retry) if _is_number(retry) else (_parse_http_date(retry) or now) - now
        )
    reset, left = str(headers.get("X-RateLimit-Reset", "")), headers.get("X-RateLimit-Remaining")
    # GitHub counts on every answer; a plain "forbidden" still leaves requests over.
    if _is_number(reset) and (status == _TOO_MANY_REQUESTS or left in (None, "0")):
        return _clamp_wait(int(reset) - now)
    return DEFAULT_RETRY_AFTER if status == _TOO_MANY_REQUESTS else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20  # noqa: PLR2004 - digits


def _clamp_wait(seconds: float) -> int:
    return int(min(max(seconds, 0), MAX_RETRY_AFTER))


def _parse_http_date(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, OverflowError, OSError):
        return None


def _open_body(response: HTTPResponse, hop: _Hop) -> FetchStream:
    """The body, decoded while it is read. Raises: TooLarge, SourceUnavailable."""
    length = response.length or 0
    if length > hop.max_bytes:
        raise TooLarge(hop.url.place, hop.max_bytes)
    encoding = str(response.headers.get("Content-Encoding", "identity")).strip().lower()
    pieces = _read_chunks(response, hop)
    if encoding in {"gzip", "x-gzip"}:
        pieces, length = _gunzip(pieces, hop), 0
    elif encoding not in {"", "identity"}:
        raise SourceUnavailable(hop.url.host, "it packs its answer in an unknown way")
    return FetchStream(_limit_size(pieces, hop), hop.url.place, "", "", length)


def _limit_size(chunks: Iterator[bytes], hop: _Hop) -> Iterator[bytes]:
    count = 0
    for piece in chunks:
        count += len(piece)
        if count > hop.max_bytes:
            raise TooLarge(hop.url.place, hop.max_bytes)
        yield piece


def _read_chunks(response: HTTPResponse, hop: _Hop) -> Iterator[bytes]:
    while piece := _read_chunk(response, hop.url.host):
        yield piece
    if response.length:  # of what was announced, this is missing
        raise SourceUnavailable(hop.url.host, "its answer ends too early")


def _read_chunk(response: HTTPResponse, host: str) -> bytes:
    with translate_network_errors(host):
        return response.read(_CHUNK)


def _gunzip(chunks: Iterator[bytes], hop: _Hop) -> Iterator[bytes]:
    """The content of one gzip stream, in pieces of bounded size."""
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        for piece in chunks:
            waiting = piece
            while waiting and not stream.eof:
                yield stream.decompress(waiting, _CHUNK)
                waiting = stream.unconsumed_tail
            if stream.unused_data or (stream.eof and waiting):
                raise SourceUnavailable(hop.url.host, "its gzip stream goes on after its end")
    except zlib.error:
        raise SourceUnavailable(hop.url.host, "its gzip stream is damaged") from None
    yield stream.flush()
    if not stream.eof:
        raise SourceUnavailable(hop.url.host, "its gzip stream ends too early")
