"""One GET over https: from a checked address, under a size and a time, or not at all.

A host is looked up once and the answer dialled as it is, so it cannot change after the check. Every
redirect is a request like the first. Proxies that the environment names are not used: they would
look the host up again.
"""

from __future__ import annotations

import io
import re
import socket
import ssl
import threading
import time
import zlib
from contextlib import closing
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import HTTPException, HTTPMessage, HTTPResponse
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urljoin

from skillhall.errors import (
    RateLimited,
    SourceNotFound,
    SourceRejected,
    SourceTimedOut,
    SourceUnavailable,
    TooLarge,
)
from skillhall.sources.addresses import PUBLIC, checked_addresses, look_up
from skillhall.sources.reference import WebUrl, checked_characters
from skillhall.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall.sources.addresses import Address, AddressPolicy, Resolver

MAX_HOPS = 5  # redirects
OVERALL = 30.0  # seconds for everything
IDLE = 10.0  # seconds without a byte
UNKNOWN_WAIT = 60  # seconds, for a host that says "too many" and not until when
LONGEST_WAIT = 86_400  # seconds; a day is as good as any longer time
_CHUNK = 64 * 1024  # bytes
_ENVELOPE = 256 * 1024  # bytes of headers and chunk sizes, beside twice the body
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


@dataclass(frozen=True, slots=True)
class Network:
    """How hosts are found and trusted, and how long they may take."""

    resolve: Resolver = look_up
    tls: ssl.SSLContext | None = None  # `None` trusts whom the system trusts
    overall: float = OVERALL
    idle: float = IDLE


class Fetched(NamedTuple):
    """What came; `url` is where from in the end, without a query."""

    data: bytes
    url: str
    etag: str
    content_type: str
    unchanged: bool = False  # the host says that the copy with our etag is still good


def fetch(
    url: str,
    *,
    at_most: int,
    policy: AddressPolicy = PUBLIC,
    request: Request = Request(),  # noqa: B008 - frozen
    network: Network = Network(),  # noqa: B008 - frozen
) -> Fetched:
    """The bytes at an https URL; http only to addresses that the policy allows by name.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, TooLarge.
    """
    hop = _Hop(WebUrl.parse(url), request, at_most, _Patience(network))
    for _ in range(MAX_HOPS + 1):
        answer = _follow(hop, policy, network)
        if isinstance(answer, Fetched):
            return answer
        hop = answer
    raise SourceUnavailable(hop.url.host, f"it redirects more than {MAX_HOPS} times")


class _Patience:
    """The time that is left."""

    def __init__(self, network: Network) -> None:
        self._end = time.monotonic() + network.overall
        self._idle = network.idle

    def next(self) -> float:
        """Seconds to wait for the next thing to happen. Raises: TimeoutError."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self._idle)


class _Hop(NamedTuple):
    url: WebUrl
    request: Request
    at_most: int
    patience: _Patience


def _follow(hop: _Hop, policy: AddressPolicy, network: Network) -> Fetched | _Hop:
    """The answer to one request, or the request that it leads to."""
    host = hop.url.host
    try:
        addresses = _find(hop, policy, network.resolve)
        with closing(_connect(hop, addresses, network)) as line:
            line.settimeout(hop.patience.next())
            line.sendall(_written(hop))
            with closing(_response(line, hop)) as response:
                return _judged(response, hop)
    except TimeoutError:
        raise SourceTimedOut(host, "it takes too long") from None
    except ssl.SSLCertVerificationError as error:
        problem = f"its certificate is not valid: {error.verify_message}"
        raise SourceUnavailable(host, problem) from None
    except ssl.SSLError:
        raise SourceUnavailable(host, "no safe connection to it is possible") from None
    except OSError:
        raise SourceUnavailable(host, "the connection to it broke") from None
    except (HTTPException, ValueError):  # http.client lets some ValueErrors through
        raise SourceUnavailable(host, "its answer cannot be read") from None


def _find(hop: _Hop, policy: AddressPolicy, resolve: Resolver) -> tuple[Address, ...]:
    url = hop.url
    waiting = _Bounded(resolve, hop.patience)
    addresses = checked_addresses(url.host, url.port, policy, waiting)
    if url.scheme == "http" and not all(map(policy.allows_by_name, addresses)):
        raise SourceRejected("scheme", url.place, "'http' is not safe", "use https")
    return addresses


class _Bounded:
    """A resolver that gives up in time; the system's own may take minutes."""

    def __init__(self, resolve: Resolver, patience: _Patience) -> None:
        self._resolve = resolve
        self._patience = patience

    def __call__(self, host: str, port: int) -> list[str]:
        found: list[str] = []
        failed: list[Exception] = []

        def work() -> None:
            try:
                found.extend(self._resolve(host, port))
            except (OSError, ValueError) as error:
                failed.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(self._patience.next())
        if thread.is_alive():
            raise TimeoutError
        if failed:
            raise failed[0]
        return found


def _connect(hop: _Hop, addresses: tuple[Address, ...], network: Network) -> socket.socket:
    """A line to the first address that answers. Raises: OSError, SourceUnavailable."""
    failure: OSError | None = None
    for address in addresses:
        try:
            line = _dial(hop, address)
        except OSError as error:
            failure = error
            continue
        return line if hop.url.scheme == "http" else _secured(line, hop, network)
    if isinstance(failure, TimeoutError):
        raise failure
    raise SourceUnavailable(hop.url.host, "it cannot be reached")


def _dial(hop: _Hop, address: Address) -> socket.socket:
    is_v4 = isinstance(address, IPv4Address)
    line = socket.socket(socket.AF_INET if is_v4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        line.settimeout(hop.patience.next())
        line.connect((str(address), hop.url.port))
    except OSError:
        line.close()
        raise
    return line


def _secured(line: socket.socket, hop: _Hop, network: Network) -> ssl.SSLSocket:
    """The line under TLS, with the certificate of the host that was asked for."""
    context = network.tls or _system_trust()
    # Some builds of Python let OpenSSL take a cut line for an end; a body may then be cut unseen.
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    name = hop.url.host.strip("[]")
    try:
        line.settimeout(hop.patience.next())
        # A body that ends without a goodbye may have been cut by somebody on the way.
        return context.wrap_socket(line, server_hostname=name, suppress_ragged_eofs=False)
    except OSError:
        line.close()
        raise


@cache
def _system_trust() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


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


class _Wire(io.RawIOBase):
    """The bytes of a line, while there is time, and no more of them than any answer needs."""

    def __init__(self, line: socket.socket, hop: _Hop) -> None:
        self._line = line
        self._hop = hop
        # http.client reads a chunk of size -1 to the end of all things; here it ends earlier.
        self._left = 2 * hop.at_most + _ENVELOPE

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What http.client asks of a socket."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # io passes this one
        self._line.settimeout(self._hop.patience.next())
        count = self._line.recv_into(buffer)
        self._left -= count
        if self._left < 0:
            raise TooLarge(self._hop.url.place, self._hop.at_most)
        return count


def _response(line: socket.socket, hop: _Hop) -> HTTPResponse:
    """The answer up to its body. Raises: OSError, HTTPException, ValueError, TooLarge."""
    # Of a socket, http.client uses `makefile` only.
    response = HTTPResponse(cast("socket.socket", _Wire(line, hop)), method="GET")
    try:
        response.begin()
    except BaseException:
        response.close()
        raise
    return response


def _judged(response: HTTPResponse, hop: _Hop) -> Fetched | _Hop:
    status, url = response.status, hop.url
    if status in _REDIRECTS:
        return _redirected(response.headers, hop)
    if status in _GONE:
        raise SourceNotFound(url.place)
    if (seconds := _wait_asked(status, response.headers)) is not None:
        raise RateLimited(url.host, seconds)
    if status == _NOT_MODIFIED and hop.request.etag:
        return Fetched(b"", url.place, hop.request.etag, "", unchanged=True)
    if status != _OK:
        raise SourceUnavailable(url.host, f"it answers with status {status}")
    etag, kind = _header(response.headers, "ETag"), _header(response.headers, "Content-Type")
    return Fetched(_body(response, hop), url.place, etag, kind)


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
    return hop._replace(url=following, request=request)


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


def _body(response: HTTPResponse, hop: _Hop) -> bytes:
    """The body, decoded, all of it. Raises: TooLarge, SourceUnavailable."""
    if response.length is not None and response.length > hop.at_most:
        raise TooLarge(hop.url.place, hop.at_most)
    encoding = str(response.headers.get("Content-Encoding", "identity")).strip().lower()
    pieces = _pieces(response, hop)
    if encoding in {"gzip", "x-gzip"}:
        pieces = _unpacked(pieces, hop)
    elif encoding not in {"", "identity"}:
        raise SourceUnavailable(hop.url.host, "it packs its answer in an unknown way")
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > hop.at_most:
            raise TooLarge(hop.url.place, hop.at_most)
    return bytes(data)


def _pieces(response: HTTPResponse, hop: _Hop) -> Iterator[bytes]:
    while piece := response.read(_CHUNK):
        yield piece
    if response.length:  # of what was announced, this is missing
        raise SourceUnavailable(hop.url.host, "its answer ends too early")


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
