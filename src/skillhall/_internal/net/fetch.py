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

from skillhall._internal.net.addresses import PUBLIC
from skillhall._internal.net.connection import Call, Network, Patience, Wire, open_line, told_of
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
Progress: TypeAlias = "Callable[[int, int], None]"

MAX_HOPS = 5  # redirects
UNKNOWN_WAIT = 60  # seconds, for a host that says "too many" and not until when
LONGEST_WAIT = 86_400  # seconds; a day is as good as any longer time
_CHUNK = 64 * 1024  # bytes
_HEADER = re.compile(r"[\x20-\x7e]{1,4096}")
_REDIRECTS = {301, 302, 303, 307, 308}
_GONE = {404, 410}
_OK, _NOT_MODIFIED, _FORBIDDEN, _TOO_MANY = 200, 304, 403, 429


@dataclass(frozen=True, slots=True)
class Request:
    """What a request says besides its URL; the token stays with the first host."""

    etag: str = ""
    token: str = field(default="", repr=False)
    accept: str = "*/*"

    def __post_init__(self) -> None:
        """Refuse what would not fit on one line. Raises: ValueError, which repeats no secret."""
        for name in ("etag", "token", "accept"):
            value = getattr(self, name)
            if value and not _HEADER.fullmatch(value):
                raise ValueError(f"the {name} is not a line of ASCII characters")


class Fetched(NamedTuple):
    """What came; `url` is where from in the end, without a query."""

    data: bytes
    url: str
    etag: str
    content_type: str
    unchanged: bool = False  # the host says that the copy with our etag is still good


class Stream(NamedTuple):
    """What comes, while it comes: `chunks` can be read once, and only inside `open_stream`."""

    chunks: Iterator[bytes]
    url: str
    etag: str
    content_type: str
    length: int = 0  # bytes, if the host says how many
    unchanged: bool = False

    def watched(self, progress: Progress | None) -> Iterator[bytes]:
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
    at_most: int,
    policy: AddressPolicy = PUBLIC,
    request: Request = Request(),  # noqa: B008 - frozen
    network: Network = Network(),  # noqa: B008 - frozen
    progress: Progress | None = None,
) -> Fetched:
    """The bytes at an https URL; http only to addresses that the policy allows by name.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, TooLarge.
    """
    opened = open_stream(url, at_most=at_most, policy=policy, request=request, network=network)
    with opened as stream:
        data = b"".join(stream.watched(progress))
        return Fetched(data, stream.url, stream.etag, stream.content_type, stream.unchanged)


@contextmanager
def open_stream(
    url: str,
    *,
    at_most: int,
    policy: AddressPolicy = PUBLIC,
    request: Request = Request(),  # noqa: B008 - frozen
    network: Network = Network(),  # noqa: B008 - frozen
) -> Iterator[Stream]:
    """The same as `fetch`, chunk by chunk: reading them raises what `fetch` would."""
    hop = _Hop(Call(WebUrl.parse(url), Patience(network), network), request, at_most)
    for _ in range(MAX_HOPS + 1):
        with _answered(hop, policy) as response:
            judged = _judged(response, hop)
            if isinstance(judged, Stream):
                yield judged
                return
        hop = judged
    raise SourceUnavailable(hop.url.host, f"it redirects more than {MAX_HOPS} times")


class _Hop(NamedTuple):
    call: Call
    request: Request
    at_most: int

    @property
    def url(self) -> WebUrl:
        return self.call.url


@contextmanager
def _answered(hop: _Hop, policy: AddressPolicy) -> Iterator[HTTPResponse]:
    """The answer to one request, up to its body."""
    with told_of(hop.url.host):
        line = open_line(hop.call, policy)
    with closing(line):
        with told_of(hop.url.host):
            line.settimeout(hop.call.patience.next())
            line.sendall(_written(hop))
            response = _response(line, hop)
        with closing(response):
            yield response


def _written(hop: _Hop) -> bytes:
    url, request = hop.url, hop.request
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


def _response(line: socket.socket, hop: _Hop) -> HTTPResponse:
    """The answer up to its body. Raises: OSError, HTTPException, ValueError, TooLarge."""
    # Of a socket, http.client uses `makefile` only.
    wire = cast("socket.socket", Wire(line, hop.call, hop.at_most))
    response = HTTPResponse(wire, method="GET")
    try:
        response.begin()
    except BaseException:
        response.close()
        raise
    return response


def _judged(response: HTTPResponse, hop: _Hop) -> Stream | _Hop:
    status, url = response.status, hop.url
    if status in _REDIRECTS:
        return _redirected(response.headers, hop)
    if status in _GONE:
        raise SourceNotFound(url.place)
    if (seconds := _wait_asked(status, response.headers)) is not None:
        raise RateLimited(url.host, seconds)
    if status == _NOT_MODIFIED and hop.request.etag:
        return Stream(iter(()), url.place, hop.request.etag, "", unchanged=True)
    if status != _OK:
        raise SourceUnavailable(url.host, f"it answers with status {status}", status=status)
    etag, kind = _header(response.headers, "ETag"), _header(response.headers, "Content-Type")
    return _body(response, hop)._replace(etag=etag, content_type=kind)


def _header(headers: HTTPMessage, name: str) -> str:
    value = str(headers.get(name, ""))
    return value if _HEADER.fullmatch(value) else ""


def _redirected(headers: HTTPMessage, hop: _Hop) -> _Hop:
    """The next request. The token stays with whom it was meant for."""
    url, place = hop.url, str(headers.get("Location", ""))
    if not place:
        raise SourceUnavailable(url.host, "it redirects to nowhere")
    following = _joined(url, place)
    if url.scheme == "https" and following.scheme == "http":
        raise SourceRejected("scheme", following.place, "a redirect leads from https to http")
    request = hop.request
    if following.origin != url.origin:
        request = Request(request.etag, "", request.accept)
    return hop._replace(call=hop.call._replace(url=following), request=request)


def _joined(url: WebUrl, place: str) -> WebUrl:
    try:
        return WebUrl.parse(urljoin(url.place, checked_characters(place)))
    except ValueError:  # urljoin has its own opinion of brackets
        raise SourceRejected("url", place, "a redirect leads to no URL") from None


def _wait_asked(status: int, headers: HTTPMessage) -> int | None:
    """The seconds that a host asks us to wait, if that is what its answer means."""
    if status not in (_FORBIDDEN, _TOO_MANY):
        return None
    now = _timestamp(headers.get("Date")) or time.time()
    retry = str(headers.get("Retry-After", ""))
    if retry:
        return _bounded(int(retry) if _is_number(retry) else (_timestamp(retry) or now) - now)
    reset, left = str(headers.get("X-RateLimit-Reset", "")), headers.get("X-RateLimit-Remaining")
    # GitHub counts on every answer; a plain "forbidden" still leaves requests over.
    if _is_number(reset) and (status == _TOO_MANY or left in (None, "0")):
        return _bounded(int(reset) - now)
    return UNKNOWN_WAIT if status == _TOO_MANY else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20  # noqa: PLR2004 - digits


def _bounded(seconds: float) -> int:
    return int(min(max(seconds, 0), LONGEST_WAIT))


def _timestamp(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, OverflowError, OSError):
        return None


def _body(response: HTTPResponse, hop: _Hop) -> Stream:
    """The body, decoded while it is read. Raises: TooLarge, SourceUnavailable."""
    length = response.length or 0
    if length > hop.at_most:
        raise TooLarge(hop.url.place, hop.at_most)
    encoding = str(response.headers.get("Content-Encoding", "identity")).strip().lower()
    pieces = _pieces(response, hop)
    if encoding in {"gzip", "x-gzip"}:
        pieces, length = _unpacked(pieces, hop), 0
    elif encoding not in {"", "identity"}:
        raise SourceUnavailable(hop.url.host, "it packs its answer in an unknown way")
    return Stream(_counted(pieces, hop), hop.url.place, "", "", length)


def _counted(pieces: Iterator[bytes], hop: _Hop) -> Iterator[bytes]:
    count = 0
    for piece in pieces:
        count += len(piece)
        if count > hop.at_most:
            raise TooLarge(hop.url.place, hop.at_most)
        yield piece


def _pieces(response: HTTPResponse, hop: _Hop) -> Iterator[bytes]:
    while piece := _piece(response, hop.url.host):
        yield piece
    if response.length:  # of what was announced, this is missing
        raise SourceUnavailable(hop.url.host, "its answer ends too early")


def _piece(response: HTTPResponse, host: str) -> bytes:
    with told_of(host):
        return response.read(_CHUNK)


def _unpacked(pieces: Iterator[bytes], hop: _Hop) -> Iterator[bytes]:
    """The content of one gzip stream, in pieces of bounded size."""
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        for piece in pieces:
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
