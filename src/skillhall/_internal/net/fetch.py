"""HTTPS GET requests to verified addresses, with size and time limits.

Every redirect is checked like the first request. Credentials are for the first origin only.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from http.client import HTTPMessage, HTTPResponse
from typing import NamedTuple, Protocol, TypeAlias
from urllib.parse import urljoin

from skillhall._internal.net.addresses import PUBLIC_ONLY, AddressPolicy, is_loopback
from skillhall._internal.net.connection import (
    ConnectionRequest,
    NetworkSettings,
    Timeout,
    limit_size,
    read_chunks,
    send_request,
    serialize_request,
)
from skillhall._internal.net.url import WebUrl, checked_characters
from skillhall.errors import (
    RateLimited,
    SourceNotFound,
    SourceRejected,
    SourceUnavailable,
    TooLarge,
)

# Called with the bytes received so far, and the total: 0 if the host does not send it.
DownloadProgress: TypeAlias = "Callable[[int, int], None]"

MAX_REDIRECTS = 5
DEFAULT_RETRY_AFTER = 60  # seconds, for a status 429 without a time
MAX_RETRY_AFTER = 86_400  # seconds
_CHUNK = 64 * 1024  # bytes
_HEADER_VALUE = re.compile(r"[\x20-\x7e]{1,16384}")  # tokens of registries have thousands
_SECONDS = re.compile(r"[0-9]{1,19}")
_REDIRECTS = {301, 302, 303, 307, 308}
_NOT_FOUND_STATUSES = {404, 410}
_OK, _NOT_MODIFIED, _UNAUTHORIZED, _FORBIDDEN, _TOO_MANY_REQUESTS = 200, 304, 401, 403, 429


class CredentialProvider(Protocol):
    """Finds credentials for a host that asks for them."""

    def __call__(self, url: WebUrl, challenge: str | None) -> str:
        """Return the value of the Authorization header; "" if there are no credentials.

        `challenge` is the WWW-Authenticate header of a response with status 401. It is `None`
        before the first request, for which only credentials that the host asked for before are
        returned.
        """


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """Headers of a request. Credentials are sent to the first origin only."""

    etag: str = ""
    token: str = field(default="", repr=False)
    accept: str = "*/*"
    scheme: str = "Bearer"  # of the token
    # Further headers for the first origin only.
    secret_headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    credentials: CredentialProvider | None = None  # used if there is no token

    def with_authorization(self, value: str) -> FetchOptions:
        """Return a copy with this value of the Authorization header."""
        scheme, _, token = value.partition(" ")
        return replace(self, scheme=scheme, token=token) if token else self

    @property
    def authorization(self) -> str:
        """Value of the Authorization header; "" without a token."""
        return f"{self.scheme} {self.token}" if self.token else ""

    @property
    def origin_headers(self) -> dict[str, str]:
        """Headers that no other origin may get."""
        return {"Authorization": self.authorization, **dict(self.secret_headers)}

    def __post_init__(self) -> None:
        """Reject values that could inject headers.

        Raises: ValueError. Its message omits the value, which may be a secret.
        """
        values = {name: getattr(self, name) for name in ("etag", "token", "accept", "scheme")}
        for name, value in (*values.items(), *self.secret_headers):
            if value and not _HEADER_VALUE.fullmatch(value):
                raise ValueError(f"the {name} is not a single line of printable ASCII characters")


class FetchResult(NamedTuple):
    """Response body and headers; `url` is the final URL, without a query."""

    data: bytes
    url: str
    etag: str
    content_type: str
    is_not_modified: bool = False  # status 304: the content with the sent etag is current


class FetchStream(NamedTuple):
    """Response being received; `chunks` can be read once, inside `open_stream`."""

    chunks: Iterator[bytes]
    url: str
    etag: str
    content_type: str
    length: int = 0  # bytes; 0 if unknown
    is_not_modified: bool = False

    def iterate_with_progress(self, progress: DownloadProgress | None) -> Iterator[bytes]:
        """Yield the chunks and report each to `progress`."""
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
    """Fetch a URL; plain http is accepted only from explicitly allowed networks.

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
    """Fetch a URL as a stream, for the duration of a `with` block.

    Opening it and reading its chunks raise the same errors as `fetch`.
    """
    request = ConnectionRequest(WebUrl.parse(url), Timeout(network), network)
    hop = _Hop(request, options, max_bytes)
    if options.credentials is not None and not options.token:
        value = options.credentials(request.url, None)
        hop = hop._replace(options=options.with_authorization(value))
    while True:
        headers = {
            "Accept": hop.options.accept,
            "If-None-Match": hop.options.etag,
            **hop.options.origin_headers,
        }
        data = serialize_request("GET", hop.url, headers)
        with send_request(hop.connection_request, policy, data, max_bytes) as response:
            result = _handle_response(response, hop)
            if isinstance(result, FetchStream):
                yield result
                return
        hop = result


class _Hop(NamedTuple):
    connection_request: ConnectionRequest
    options: FetchOptions
    max_bytes: int
    redirects: int = 0
    has_credentials: bool = False

    @property
    def url(self) -> WebUrl:
        return self.connection_request.url


def _handle_response(response: HTTPResponse, hop: _Hop) -> FetchStream | _Hop:
    status, url = response.status, hop.url
    if status in _REDIRECTS:
        return _next_hop(response.headers, hop)
    if status in _NOT_FOUND_STATUSES:
        raise SourceNotFound(url.without_query)
    if (seconds := parse_retry_after(status, response.headers)) is not None:
        raise RateLimited(url.host, seconds)
    if status == _NOT_MODIFIED and hop.options.etag:
        return FetchStream(iter(()), url.without_query, hop.options.etag, "", is_not_modified=True)
    if status == _UNAUTHORIZED and hop.options.credentials is not None:
        return _add_credentials(response.headers, hop, hop.options.credentials)
    if status != _OK:
        raise SourceUnavailable(url.host, f"it responded with status {status}", status=status)
    length = response.length or 0
    if length > hop.max_bytes:
        raise TooLarge(url.without_query, hop.max_bytes)
    encoding = str(response.headers.get("Content-Encoding", "identity")).strip().lower()
    chunks = read_chunks(response, url.host)
    if encoding in {"gzip", "x-gzip"}:
        chunks, length = _gunzip(chunks, hop), 0
    elif encoding not in {"", "identity"}:
        raise SourceUnavailable(url.host, "the response has an unknown content encoding")
    etag = _read_header(response.headers, "ETag")
    content_type = _read_header(response.headers, "Content-Type")
    chunks = limit_size(chunks, hop.max_bytes, url.without_query)
    return FetchStream(chunks, url.without_query, etag, content_type, length)


def _read_header(headers: HTTPMessage, name: str) -> str:
    value = str(headers.get(name, ""))
    return value if _HEADER_VALUE.fullmatch(value) else ""


def _add_credentials(headers: HTTPMessage, hop: _Hop, credentials: CredentialProvider) -> _Hop:
    """Build the request with the credentials that the host asks for. Raises: SourceUnavailable."""
    url, options, value = hop.url, hop.options, ""
    # Plain http is used in networks that the user allows, where others may listen.
    if not hop.has_credentials and (url.scheme == "https" or is_loopback(url.host)):
        value = credentials(url, ", ".join(headers.get_all("WWW-Authenticate", [])))
    if value:
        return hop._replace(options=options.with_authorization(value), has_credentials=True)
    if options.token:
        problem = "it rejected the credentials"
        raise SourceUnavailable(url.host, problem, status=_UNAUTHORIZED, access="login_rejected")
    problem = "it asks for credentials"
    raise SourceUnavailable(url.host, problem, status=_UNAUTHORIZED, access="no_login")


def _next_hop(headers: HTTPMessage, hop: _Hop) -> _Hop:
    """Build the request for a redirect, without the token if the origin changes.

    Raises: SourceUnavailable, SourceRejected.
    """
    url, location = hop.url, str(headers.get("Location", ""))
    if hop.redirects == MAX_REDIRECTS:
        raise SourceUnavailable(url.host, f"more than {MAX_REDIRECTS} redirects")
    if not location:
        raise SourceUnavailable(url.host, "it sent a redirect without a location")
    try:
        target = WebUrl.parse(urljoin(url.without_query, checked_characters(location)))
    except ValueError:  # urljoin rejects some uses of brackets
        raise SourceRejected("url", location, "a redirect leads to an invalid URL") from None
    if url.scheme == "https" and target.scheme == "http":
        raise SourceRejected("scheme", target.without_query, "a redirect leads from https to http")
    options = hop.options
    if target.origin != url.origin:
        options = FetchOptions(options.etag, "", options.accept)
    request = hop.connection_request._replace(url=target)
    return hop._replace(connection_request=request, options=options, redirects=hop.redirects + 1)


def parse_retry_after(status: int, headers: HTTPMessage) -> int | None:
    """Return the seconds to wait if the request was rate limited, else `None`."""
    if status not in (_FORBIDDEN, _TOO_MANY_REQUESTS):
        return None
    now = _parse_http_date(headers.get("Date")) or time.time()
    retry, reset = (str(headers.get(name, "")) for name in ("Retry-After", "X-RateLimit-Reset"))
    seconds: float
    if _SECONDS.fullmatch(retry):
        seconds = int(retry)
    elif retry:
        seconds = (_parse_http_date(retry) or now) - now
    # GitHub sends these headers with every response; a plain 403 still has requests remaining.
    elif _SECONDS.fullmatch(reset) and (
        status == _TOO_MANY_REQUESTS or headers.get("X-RateLimit-Remaining") in (None, "0")
    ):
        seconds = int(reset) - now
    else:
        return DEFAULT_RETRY_AFTER if status == _TOO_MANY_REQUESTS else None
    return int(min(max(seconds, 0), MAX_RETRY_AFTER))


def _parse_http_date(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, OverflowError, OSError):
        return None


def _gunzip(chunks: Iterator[bytes], hop: _Hop) -> Iterator[bytes]:
    """Decompress a gzip stream in chunks of limited size."""
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        for chunk in chunks:
            pending = chunk
            while pending and not stream.eof:
                yield stream.decompress(pending, _CHUNK)
                pending = stream.unconsumed_tail
            if stream.unused_data or (stream.eof and pending):
                raise SourceUnavailable(hop.url.host, "the response has data after its gzip stream")
    except zlib.error:
        raise SourceUnavailable(hop.url.host, "the response is not valid gzip") from None
    yield stream.flush()
    if not stream.eof:
        raise SourceUnavailable(hop.url.host, "the gzip stream of the response is incomplete")
