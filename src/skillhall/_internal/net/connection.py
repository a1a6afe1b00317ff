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

from skillhall._internal.net.addresses import checked_addresses, look_up
from skillhall.errors import SourceRejected, SourceTimedOut, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.net.addresses import Address, AddressPolicy, Resolver
    from skillhall._internal.net.url import WebUrl

OVERALL = 30.0  # seconds for everything
IDLE = 10.0  # seconds without a byte
_ENVELOPE = 256 * 1024  # bytes of headers and chunk sizes, beside twice the body


@dataclass(frozen=True, slots=True)
class Network:
    """How hosts are found and trusted, and how long they may take."""

    resolve: Resolver = look_up
    tls: ssl.SSLContext | None = None  # `None` trusts whom the system trusts
    overall: float = OVERALL
    idle: float = IDLE


class Patience:
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


class Call(NamedTuple):
    """Whom we call, and how long we wait for each thing that happens."""

    url: WebUrl
    patience: Patience
    network: Network


@contextmanager
def told_of(host: str) -> Iterator[None]:
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


def open_line(call: Call, policy: AddressPolicy) -> socket.socket:
    """A line to the host, for the caller to close. Raises: OSError, Source errors."""
    return _connect(call, _find(call, policy))


def _find(call: Call, policy: AddressPolicy) -> tuple[Address, ...]:
    url = call.url
    waiting = _Bounded(call.network.resolve, call.patience)
    addresses = checked_addresses(url.host, url.port, policy, waiting)
    if url.scheme == "http" and not all(map(policy.allows_by_name, addresses)):
        raise SourceRejected("scheme", url.place, "'http' is not safe", "use https")
    return addresses


class _Bounded:
    """A resolver that gives up in time; the system's own may take minutes."""

    def __init__(self, resolve: Resolver, patience: Patience) -> None:
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


def bounded(network: Network) -> Resolver:
    """The network's resolver, which gives up when its time is over."""
    return _Bounded(network.resolve, Patience(network))


def _connect(call: Call, addresses: tuple[Address, ...]) -> socket.socket:
    """A line to the first address that answers. Raises: OSError, SourceUnavailable."""
    failure: OSError | None = None
    for address in addresses:
        try:
            line = _dial(call, address)
        except OSError as error:
            failure = error
            continue
        return line if call.url.scheme == "http" else _secured(line, call)
    if isinstance(failure, TimeoutError):
        raise failure
    raise SourceUnavailable(call.url.host, "it cannot be reached")


def _dial(call: Call, address: Address) -> socket.socket:
    is_v4 = isinstance(address, IPv4Address)
    line = socket.socket(socket.AF_INET if is_v4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        line.settimeout(call.patience.next())
        line.connect((str(address), call.url.port))
    except OSError:
        line.close()
        raise
    return line


def _secured(line: socket.socket, call: Call) -> ssl.SSLSocket:
    """The line under TLS, with the certificate of the host that was asked for."""
    context = call.network.tls or _system_trust()
    # Some builds of Python let OpenSSL take a cut line for an end; a body may then be cut unseen.
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    name = call.url.host.strip("[]")
    try:
        line.settimeout(call.patience.next())
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


class Wire(io.RawIOBase):
    """The bytes of a line, while there is time, and no more than a body of `at_most` needs."""

    def __init__(self, line: socket.socket, call: Call, at_most: int) -> None:
        self._line = line
        self._call = call
        self._at_most = at_most
        # http.client reads a chunk of size -1 to the end of all things; here it ends earlier.
        self._left = 2 * at_most + _ENVELOPE

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What http.client asks of a socket."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """What io asks."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # io passes this one
        """The bytes that are there. Raises: OSError, TooLarge."""
        self._line.settimeout(self._call.patience.next())
        count = self._line.recv_into(buffer)
        self._left -= count
        if self._left < 0:
            raise TooLarge(self._call.url.place, self._at_most)
        return count
