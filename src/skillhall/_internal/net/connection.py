"""A line to a host: to an address that was checked, under TLS, for as long as patience lasts.

A host is looked up once and the answer dialled as it is, so it cannot change after the check.
"""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.net.addresses import resolve_allowed_addresses, resolve_host
from skillhall.errors import SourceRejected, SourceTimedOut, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.net.addresses import AddressPolicy, IpAddress, Resolver
    from skillhall._internal.net.url import WebUrl

DEFAULT_TOTAL_TIMEOUT = 30.0  # seconds for everything
DEFAULT_IDLE_TIMEOUT = 10.0  # seconds without a byte
_RESPONSE_OVERHEAD = 256 * 1024  # bytes of headers and chunk sizes, beside twice the body


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """How hosts are found and trusted, and how long they may take."""

    resolve: Resolver = resolve_host
    tls: ssl.SSLContext | None = None  # `None` trusts whom the system trusts
    total: float = DEFAULT_TOTAL_TIMEOUT
    idle: float = DEFAULT_IDLE_TIMEOUT


class Timeout:
    """The time that is left."""

    def __init__(self, network: NetworkSettings) -> None:
        self._deadline = time.monotonic() + network.total
        self._idle = network.idle

    def next_timeout(self) -> float:
        """Seconds to wait for the next thing to happen. Raises: TimeoutError."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self._idle)


class ConnectionRequest(NamedTuple):
    """Whom we call, and how long we wait for each thing that happens."""

    url: WebUrl
    timeout: Timeout
    network: NetworkSettings


@contextmanager
def translate_network_errors(host: str) -> Iterator[None]:
    """Whatever breaks on a line, as an error that names the host."""
    try:
        yield
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


def open_connection(request: ConnectionRequest, policy: AddressPolicy) -> socket.socket:
    """A line to the host, for the caller to close. Raises: OSError, Source errors."""
    return _connect(request, _resolve_addresses(request, policy))


def _resolve_addresses(request: ConnectionRequest, policy: AddressPolicy) -> tuple[IpAddress, ...]:
    url = request.url
    waiting = _TimeLimitedResolver(request.network.resolve, request.timeout)
    addresses = resolve_allowed_addresses(url.host, url.port, policy, waiting)
    if url.scheme == "http" and not all(map(policy.is_explicitly_allowed, addresses)):
        raise SourceRejected("scheme", url.place, "'http' is not safe", "use https")
    return addresses


class _TimeLimitedResolver:
    """A resolver that gives up in time; the system's own may take minutes."""

    def __init__(self, resolve: Resolver, timeout: Timeout) -> None:
        self._resolve = resolve
        self._timeout = timeout

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
        thread.join(self._timeout.next_timeout())
        if thread.is_alive():
            raise TimeoutError
        if failed:
            raise failed[0]
        return found


def limit_resolver(network: NetworkSettings) -> Resolver:
    """The network's resolver, which gives up when its time is over."""
    return _TimeLimitedResolver(network.resolve, Timeout(network))


def _connect(request: ConnectionRequest, addresses: tuple[IpAddress, ...]) -> socket.socket:
    """A line to the first address that answers. Raises: OSError, SourceUnavailable."""
    failure: OSError | None = None
    for address in addresses:
        try:
            line = _connect_to_address(request, address)
        except OSError as error:
            failure = error
            continue
        return line if request.url.scheme == "http" else _wrap_tls(line, request)
    if isinstance(failure, TimeoutError):
        raise failure
    raise SourceUnavailable(request.url.host, "it cannot be reached")


def _connect_to_address(request: ConnectionRequest, address: IpAddress) -> socket.socket:
    is_v4 = isinstance(address, IPv4Address)
    line = socket.socket(socket.AF_INET if is_v4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        line.settimeout(request.timeout.next_timeout())
        line.connect((str(address), request.url.port))
    except OSError:
        line.close()
        raise
    return line


def _wrap_tls(sock: socket.socket, request: ConnectionRequest) -> ssl.SSLSocket:
    """The line under TLS, with the certificate of the host that was asked for."""
    context = request.network.tls or _default_tls_context()
    # Some builds of Python let OpenSSL take a cut line for an end; a body may then be cut unseen.
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    name = request.url.host.strip("[]")
    try:
        sock.settimeout(request.timeout.next_timeout())
        # A body that ends without a goodbye may have been cut by somebody on the way.
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
    """The bytes of a line, while there is time, and no more than a body of `at_most` needs."""

    def __init__(self, sock: socket.socket, request: ConnectionRequest, max_bytes: int) -> None:
        self._socket = sock
        self._request = request
        self._max_bytes = max_bytes
        # http.client reads a chunk of size -1 to the end of all things; here it ends earlier.
        self._remaining_bytes = 2 * max_bytes + _RESPONSE_OVERHEAD

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What http.client asks of a socket."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """What io asks."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # io passes this one
        """The bytes that are there. Raises: OSError, TooLarge."""
        self._socket.settimeout(self._request.timeout.next_timeout())
        count = self._socket.recv_into(buffer)
        self._remaining_bytes -= count
        if self._remaining_bytes < 0:
            raise TooLarge(self._request.url.place, self._max_bytes)
        return count
