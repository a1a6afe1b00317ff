"""HTTP requests over a TLS connection to a verified IP address, with timeouts.

A host is resolved once, and only the checked address is used. A second lookup could return a
different address (DNS rebinding). A proxy gets the name instead, and resolves it by its own
rules.
"""

from __future__ import annotations

import io
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from http.client import HTTPException, HTTPResponse
from ipaddress import IPv4Address
from typing import NamedTuple, NoReturn, cast

from skillhall._internal.net.addresses import (
    ANY_ADDRESS,
    AddressPolicy,
    IpAddress,
    Resolver,
    resolve_allowed_addresses,
    resolve_host,
    resolve_proxied_addresses,
)
from skillhall._internal.net.proxies import Proxy, find_proxy
from skillhall._internal.net.url import WebUrl
from skillhall._internal.settings import Secret
from skillhall._version import VERSION
from skillhall.errors import (
    ConfigInvalid,
    SourceRejected,
    SourceTimedOut,
    SourceUnavailable,
    TooLarge,
)

DEFAULT_TOTAL_TIMEOUT = 30.0  # seconds for lookup, connection and response together
DEFAULT_IDLE_TIMEOUT = 10.0  # seconds without a byte
TOKEN_PATTERN = re.compile(r"[\x21-\x7e]{1,4096}")
_RESPONSE_OVERHEAD = 256 * 1024  # bytes of headers and chunk sizes, in addition to the body
_CHUNK = 64 * 1024  # bytes
_PROXIED_LOOKUP_TIMEOUT = 2.0  # seconds
_USER_AGENT = f"skillhall/{VERSION}"
_OK, _PROXY_AUTHENTICATION = range(200, 300), 407


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Resolver, TLS context and timeouts of a request."""

    resolve: Resolver = resolve_host
    tls: ssl.SSLContext | None = None  # `None` uses the system's certificates
    total: float = DEFAULT_TOTAL_TIMEOUT
    idle: float = DEFAULT_IDLE_TIMEOUT


class Timeout:
    """Deadline of a request, combined with its idle timeout."""

    def __init__(self, network: NetworkSettings) -> None:
        self._deadline = time.monotonic() + network.total
        self._idle = network.idle

    def next_timeout(self) -> float:
        """Return the timeout in seconds of the next socket call. Raises: TimeoutError."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        return min(remaining, self._idle)


class ConnectionRequest(NamedTuple):
    """URL to connect to, with its timeout and network settings."""

    url: WebUrl
    timeout: Timeout
    network: NetworkSettings


def serialize_request(
    method: str, url: WebUrl, headers: Mapping[str, str], body: bytes | None = None
) -> bytes:
    """Serialize a request; headers with an empty value are left out."""
    all_headers = {
        "Host": url.authority,
        "User-Agent": _USER_AGENT,
        "Accept-Encoding": "identity",
        "Connection": "close",
        "Content-Length": "" if body is None else str(len(body)),
        **headers,
    }
    lines = [f"{name}: {value}" for name, value in all_headers.items() if value]
    head = "\r\n".join([f"{method} {url.target} HTTP/1.1", *lines, "", ""])
    return head.encode("ascii") + (body or b"")


@contextmanager
def send_request(
    request: ConnectionRequest,
    policy: AddressPolicy,
    data: bytes,
    max_bytes: int,
    response_network: NetworkSettings | None = None,
) -> Iterator[HTTPResponse]:
    """Connect, send `data`, and yield the response; `read_chunks` reads its body.

    `response_network` has the timeouts for sending and reading, if they differ from those for
    connecting.
    Raises: SourceRejected, SourceUnavailable, TooLarge, ConfigInvalid.
    """
    url = request.url
    host = url.host
    proxy = find_proxy(url.scheme, host, url.port, policy.proxies)
    if proxy is not None and url.scheme == "http":
        data = proxy.rewrite_request(url, data)
    with translate_network_errors(host):
        sock = open_connection(request, policy)
    if response_network is not None:
        request = request._replace(timeout=Timeout(response_network))
    with closing(sock):
        # The only method of a socket that http.client calls is `makefile`.
        connection = cast("socket.socket", Connection(sock, request, max_bytes))
        with closing(HTTPResponse(connection)) as response:
            with translate_network_errors(host):
                sock.settimeout(request.timeout.next_timeout())
                sock.sendall(data)
                response.begin()
            yield response


def read_chunks(
    response: HTTPResponse, host: str, *, is_event_stream: bool = False
) -> Iterator[bytes]:
    """Yield the body in chunks; those of an event stream as soon as they arrive.

    Raises: SourceUnavailable, TooLarge.
    """
    read = response.read1 if is_event_stream else response.read
    # Counted here, because `read1` of some versions of http.client waits for more than the length.
    length, count = response.length, 0
    while length is None or count < length:
        with translate_network_errors(host):
            chunk = read(_CHUNK)
        if not chunk:
            break
        count += len(chunk)
        yield chunk
    if length is not None and count < length:
        raise SourceUnavailable(host, "the response is incomplete")


def limit_size(chunks: Iterator[bytes], max_bytes: int, name: str) -> Iterator[bytes]:
    """Yield the chunks, up to `max_bytes` in total.

    Raises: TooLarge, with `name` as its path.
    """
    count = 0
    for chunk in chunks:
        count += len(chunk)
        if count > max_bytes:
            raise TooLarge(name, max_bytes)
        yield chunk


def parse_response_json(data: bytes) -> object:
    """Parse the JSON of a response; `None` if it is invalid."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return None


def _reject_constant(constant: str) -> NoReturn:  # NaN and Infinity, which are not JSON
    raise ValueError(constant)


def reveal_token(token: Secret | None, variable: str) -> str:
    """Return the token, or "" if there is none.

    `variable` names it in errors. Raises: ConfigInvalid if it is not valid in a header.
    """
    revealed = "" if token is None else token.reveal()
    if revealed and not TOKEN_PATTERN.fullmatch(revealed):
        raise ConfigInvalid(variable, "it contains spaces or non-ASCII characters")
    return revealed


@contextmanager
def translate_network_errors(host: str) -> Iterator[None]:
    """Translate network exceptions into errors that name the host."""
    try:
        yield
    except TimeoutError:
        raise SourceTimedOut(host, "the request timed out") from None
    except ssl.SSLCertVerificationError as error:
        problem = f"invalid certificate: {error.verify_message}"
        raise SourceUnavailable(host, problem) from None
    except ssl.SSLError:
        raise SourceUnavailable(host, "the TLS handshake failed") from None
    except OSError:
        raise SourceUnavailable(host, "the connection was lost") from None
    except (HTTPException, ValueError):  # http.client lets some ValueErrors through
        raise SourceUnavailable(host, "the response is not valid HTTP") from None


def open_connection(request: ConnectionRequest, policy: AddressPolicy) -> socket.socket:
    """Connect to a checked address of the URL's host, or to its proxy; the caller closes it.

    Raises: OSError, SourceRejected, SourceUnavailable, ConfigInvalid.
    """
    url = request.url
    proxy = find_proxy(url.scheme, url.host, url.port, policy.proxies)
    if proxy is None:
        resolver = limit_resolver(request.network, request.timeout)
        addresses = resolve_allowed_addresses(url.host, url.port, policy, resolver)
    else:
        resolver = limit_proxied_resolver(request.network)
        addresses = resolve_proxied_addresses(url.host, url.port, policy, resolver)
    is_allowed = bool(addresses) and all(map(policy.is_explicitly_allowed, addresses))
    if url.scheme == "http" and not is_allowed:
        raise SourceRejected("scheme", url.without_query, "'http' is not safe", "use https")
    if proxy is not None:
        sock = _connect_to_proxy(proxy, request)
    else:
        sock = _connect(addresses, url.host, url.port, request)
    return sock if url.scheme == "http" else _wrap_tls(sock, request)


def _connect(
    addresses: Iterable[IpAddress], host: str, port: int, request: ConnectionRequest
) -> socket.socket:
    """Connect to the first reachable address of a host. Raises: OSError, SourceUnavailable."""
    failure: OSError | None = None
    for address in addresses:
        is_v4 = isinstance(address, IPv4Address)
        sock = socket.socket(socket.AF_INET if is_v4 else socket.AF_INET6, socket.SOCK_STREAM)
        try:
            sock.settimeout(request.timeout.next_timeout())
            sock.connect((str(address), port))
        except OSError as error:
            sock.close()
            failure = error
        else:
            return sock
    if isinstance(failure, TimeoutError):
        raise failure
    raise SourceUnavailable(host, "the connection failed")


def _connect_to_proxy(proxy: Proxy, request: ConnectionRequest) -> socket.socket:
    """Connect to a proxy; for https, through it to the URL's host.

    The user chose the proxy, so it may be in any network. Raises: OSError, SourceUnavailable.
    """
    resolver = limit_resolver(request.network, request.timeout)
    addresses = resolve_allowed_addresses(proxy.host, proxy.port, ANY_ADDRESS, resolver)
    sock = _connect(addresses, proxy.host, proxy.port, request)
    if request.url.scheme == "http":
        return sock
    try:
        _open_tunnel(sock, proxy, request)
    except BaseException:
        sock.close()
        raise
    return sock


def _open_tunnel(sock: socket.socket, proxy: Proxy, request: ConnectionRequest) -> None:
    """Ask the proxy for a connection to the URL's host. Raises: OSError, SourceUnavailable."""
    target = f"{request.url.host}:{request.url.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", f"User-Agent: {_USER_AGENT}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    sock.settimeout(request.timeout.next_timeout())
    sock.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
    connection = cast("socket.socket", Connection(sock, request, 0))
    with closing(HTTPResponse(connection, method="CONNECT")) as response:
        response.begin()
        status = response.status
    if status == _PROXY_AUTHENTICATION:
        problem = "the proxy rejected the credentials in its URL, or needs some"
        raise SourceUnavailable(proxy.host, problem, status=status)
    if status not in _OK:
        problem = f"the proxy rejected the connection to {target} with status {status}"
        raise SourceUnavailable(proxy.host, problem, status=status)


def limit_resolver(network: NetworkSettings, timeout: Timeout | None = None) -> Resolver:
    """Return the resolver of `network`, with a timeout.

    Without one, the system's resolver may block for minutes.
    """
    limit = timeout or Timeout(network)

    def resolve_in_time(host: str, port: int) -> list[str]:
        addresses: list[str] = []
        errors: list[Exception] = []

        def resolve() -> None:
            try:
                addresses.extend(network.resolve(host, port))
            except (OSError, ValueError) as error:
                errors.append(error)

        # getaddrinfo cannot be interrupted; a daemon thread does not delay the process's exit.
        thread = threading.Thread(target=resolve, daemon=True)
        thread.start()
        thread.join(limit.next_timeout())
        if thread.is_alive():
            raise TimeoutError
        if errors:
            raise errors[0]
        return addresses

    return resolve_in_time


def limit_proxied_resolver(network: NetworkSettings) -> Resolver:
    """Return the resolver for hosts that a proxy will contact.

    Behind a proxy, a machine may be unable to resolve the names of other networks.
    """
    return limit_resolver(replace(network, total=min(network.total, _PROXIED_LOOKUP_TIMEOUT)))


def _wrap_tls(sock: socket.socket, request: ConnectionRequest) -> ssl.SSLSocket:
    """Start TLS and verify the certificate against the URL's host. Raises: OSError."""
    context = request.network.tls or _default_tls_context()
    # Some builds of Python let OpenSSL treat a dropped connection as the end of the body, so a
    # truncated body would go unnoticed.
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    name = request.url.host.strip("[]")
    try:
        sock.settimeout(request.timeout.next_timeout())
        # Without a TLS close notification, the body may have been truncated by an attacker.
        return context.wrap_socket(sock, server_hostname=name, suppress_ragged_eofs=False)
    except OSError:
        sock.close()
        raise


@cache
def _default_tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Connection(io.RawIOBase):
    """Raw stream of a socket with a timeout and a limit on the bytes read."""

    def __init__(self, sock: socket.socket, request: ConnectionRequest, max_bytes: int) -> None:
        self._socket = sock
        self._request = request
        self._max_bytes = max_bytes
        # http.client reads a chunk of size -1 without any limit, so the raw stream has one.
        self._remaining_bytes = 2 * max_bytes + _RESPONSE_OVERHEAD

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the file object that http.client reads from."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return True, as `io.BufferedReader` requires."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # io passes this one
        """Read available bytes into `buffer`. Raises: OSError, TooLarge."""
        self._socket.settimeout(self._request.timeout.next_timeout())
        count = self._socket.recv_into(buffer)
        self._remaining_bytes -= count
        if self._remaining_bytes < 0:
            raise TooLarge(self._request.url.without_query, self._max_bytes)
        return count
