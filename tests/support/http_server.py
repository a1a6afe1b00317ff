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


class ReceivedRequest(NamedTuple):
    """A request as it came; the names of headers in small letters."""

    target: str
    headers: Mapping[str, str]


class ResponseWriter:
    """What a route does with its connection: send bytes, or wait for the site to close."""

    def __init__(self, connection: socket.socket, closed: threading.Event) -> None:
        self._connection = connection
        self.closed = closed
        self.bytes_sent = 0  # bytes

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)
        self.bytes_sent += len(data)

    def send_slowly(self, data: bytes, pause: float) -> None:
        """One byte after the other, each after a pause, until the site closes."""
        for byte in data:
            if self.closed.wait(pause):
                return
            self.send(bytes([byte]))


Route: TypeAlias = Callable[[ResponseWriter], None]


def respond(
    status: str = "200 OK",
    body: bytes = b"",
    headers: Mapping[str, str] = MappingProxyType({}),
    *,
    length: int | None = None,
) -> Route:
    """A whole answer, of a wrong length if one is given."""
    size = len(body) if length is None else length
    return lambda talk: talk.send(
        build_head(status, {"Content-Length": str(size), **headers}) + body
    )


def build_head(status: str, headers: Mapping[str, str]) -> bytes:
    """The head of an answer."""
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def redirect(location: str, status: str = "302 Found") -> Route:
    return respond(status, headers={"Location": location})


def respond_without_length(body: bytes) -> Route:
    """A body that ends where the connection does."""
    return lambda talk: talk.send(b"HTTP/1.1 200 OK\r\n\r\n" + body)


def respond_chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> Route:
    """A body in chunks, and whatever stands for its end."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return lambda talk: talk.send(head + body + end)


def respond_endlessly(head: bytes) -> Route:
    """Bytes for as long as somebody reads them."""

    def send(talk: ResponseWriter) -> None:
        talk.send(head)
        while not talk.closed.is_set():
            talk.send(b"x" * 65_536)

    return send


def never_respond(talk: ResponseWriter) -> None:
    """Nothing, until the site closes."""
    talk.closed.wait(DEADLINE)


@dataclass
class HttpServer:
    """A running server."""

    port: int
    scheme: str = "http"
    routes: dict[str, Route] = field(default_factory=dict)
    requests: list[ReceivedRequest] = field(default_factory=list)
    responses: list[ResponseWriter] = field(default_factory=list)
    requested_names: list[str | None] = field(default_factory=list)  # that TLS clients asked for
    default_route: Callable[[ReceivedRequest], Route] = lambda _: respond(
        "404 Not Found"
    )  # without a route

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


@contextmanager
def run_http_server(context: ssl.SSLContext | None = None) -> Iterator[HttpServer]:
    """A site with no routes yet; every connection carries one request."""
    closed = threading.Event()
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        site = HttpServer(listening.getsockname()[1], "https" if context else "http")
        if context:
            context.sni_callback = lambda _, name, __: site.requested_names.append(name)
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
    site: HttpServer,
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
    plain: socket.socket, site: HttpServer, context: ssl.SSLContext | None, closed: threading.Event
) -> None:
    plain.settimeout(DEADLINE)
    # Clients that have seen enough hang up.
    with suppress(OSError), closing(plain):
        line = context.wrap_socket(plain, server_side=True) if context else plain
        with closing(line):
            asked = _read_request(line)
            site.requests.append(asked)
            talk = ResponseWriter(line, closed)
            site.responses.append(talk)
            path = asked.target.partition("?")[0]
            route = site.routes.get(path) or site.default_route(asked)
            route(talk)
            if isinstance(line, ssl.SSLSocket):
                line.unwrap()


def _read_request(connection: socket.socket) -> ReceivedRequest:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65_536)
        if not piece:
            raise ConnectionError
        data += piece
    first, *rest = data.decode("ascii").rstrip("\r\n").split("\r\n")
    pairs = [text.split(": ", 1) for text in rest]
    return ReceivedRequest(first.split(" ")[1], {name.lower(): value for name, value in pairs})


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
