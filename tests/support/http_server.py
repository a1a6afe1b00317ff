"""A real web server on this machine whose answers a test writes, and which remembers requests."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

DEADLINE = 120  # seconds; a conversation that takes longer hangs


class Asked(NamedTuple):
    """A request as it came; the names of headers in small letters."""

    target: str
    headers: Mapping[str, str]


class Talk:
    """What a route does with its connection: send bytes, or wait for the site to close."""

    def __init__(self, line: socket.socket, closed: threading.Event) -> None:
        self._line = line
        self.closed = closed
        self.sent = 0  # bytes

    def send(self, data: bytes) -> None:
        self._line.sendall(data)
        self.sent += len(data)

    def drip(self, data: bytes, every: float) -> None:
        """One byte after the other, each after a pause, until the site closes."""
        for byte in data:
            if self.closed.wait(every):
                return
            self.send(bytes([byte]))


Route: TypeAlias = Callable[[Talk], None]


def answer(
    status: str = "200 OK",
    body: bytes = b"",
    headers: Mapping[str, str] = MappingProxyType({}),
    *,
    length: int | None = None,
) -> Route:
    """A whole answer, of a wrong length if one is given."""
    size = len(body) if length is None else length
    return lambda talk: talk.send(written(status, {"Content-Length": str(size), **headers}) + body)


def written(status: str, headers: Mapping[str, str]) -> bytes:
    """The head of an answer."""
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def redirect(place: str, status: str = "302 Found") -> Route:
    return answer(status, headers={"Location": place})


def without_length(body: bytes) -> Route:
    """A body that ends where the connection does."""
    return lambda talk: talk.send(b"HTTP/1.1 200 OK\r\n\r\n" + body)


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> Route:
    """A body in chunks, and whatever stands for its end."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return lambda talk: talk.send(head + body + end)


def endless(head: bytes) -> Route:
    """Bytes for as long as somebody reads them."""

    def send(talk: Talk) -> None:
        talk.send(head)
        while not talk.closed.is_set():
            talk.send(b"x" * 65_536)

    return send


def silent(talk: Talk) -> None:
    """Nothing, until the site closes."""
    talk.closed.wait(DEADLINE)


@dataclass
class Site:
    """A running server."""

    port: int
    scheme: str = "http"
    routes: dict[str, Route] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    talks: list[Talk] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)  # that TLS clients asked for
    otherwise: Callable[[Asked], Route] = lambda _: answer("404 Not Found")  # without a route

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


@contextmanager
def http_site(context: ssl.SSLContext | None = None) -> Iterator[Site]:
    """A site with no routes yet; every connection carries one request."""
    closed = threading.Event()
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        site = Site(listening.getsockname()[1], "https" if context else "http")
        if context:
            context.sni_callback = lambda _, name, __: site.names.append(name)
        acceptor = threading.Thread(
            target=_accept, args=(listening, site, context, closed, threads), daemon=True
        )
        acceptor.start()
        try:
            yield site
        finally:
            closed.set()
            with closing(socket.create_connection(("127.0.0.1", site.port))):
                acceptor.join(DEADLINE)
    for thread in threads:
        thread.join(DEADLINE)
    assert not any(thread.is_alive() for thread in [acceptor, *threads])


def _accept(
    listening: socket.socket,
    site: Site,
    context: ssl.SSLContext | None,
    closed: threading.Event,
    threads: list[threading.Thread],
) -> None:
    while True:
        line, _ = listening.accept()
        if closed.is_set():
            line.close()
            return
        thread = threading.Thread(target=_serve, args=(line, site, context, closed), daemon=True)
        threads.append(thread)
        thread.start()


def _serve(
    plain: socket.socket, site: Site, context: ssl.SSLContext | None, closed: threading.Event
) -> None:
    plain.settimeout(DEADLINE)
    # Clients that have seen enough hang up.
    with suppress(OSError), closing(plain):
        line = context.wrap_socket(plain, server_side=True) if context else plain
        with closing(line):
            asked = _read(line)
            site.asked.append(asked)
            talk = Talk(line, closed)
            site.talks.append(talk)
            path = asked.target.partition("?")[0]
            route = site.routes.get(path) or site.otherwise(asked)
            route(talk)
            if isinstance(line, ssl.SSLSocket):
                line.unwrap()


def _read(line: socket.socket) -> Asked:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = line.recv(65_536)
        if not piece:
            raise ConnectionError
        data += piece
    first, *rest = data.decode("ascii").rstrip("\r\n").split("\r\n")
    pairs = [text.split(": ", 1) for text in rest]
    return Asked(first.split(" ")[1], {name.lower(): value for name, value in pairs})


def make_certificate(folder: Path, host: str) -> tuple[Path, Path]:
    """A certificate for `host` that nobody vouches for but itself, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += [
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={host}",
        "-addext",
        f"subjectAltName=DNS:{host}",
    ]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE)
    return certificate, key
