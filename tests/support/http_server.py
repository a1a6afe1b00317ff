"""Local web server with scripted responses, which records requests."""

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

DEADLINE = 120  # seconds; a slower request counts as hanging


class ReceivedRequest(NamedTuple):
    """Received request; header names are lowercase."""

    target: str
    headers: Mapping[str, str]


class ResponseWriter:
    """Connection of a route: sends bytes, or waits for the server to close."""

    def __init__(self, connection: socket.socket, closed: threading.Event) -> None:
        self._connection = connection
        self.closed = closed
        self.bytes_sent = 0

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)
        self.bytes_sent += len(data)

    def send_slowly(self, data: bytes, pause: float) -> None:
        """Send byte by byte with pauses, until the server closes."""
        for byte in data:
            if self.closed.wait(pause):
                return
            self.send(bytes([byte]))


class ScriptedResolver:
    """Resolver with scripted answers, which records the requested hosts."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.hosts: list[str] = []

    def __call__(self, host: str, _port: int) -> list[str]:
        self.hosts.append(host)
        return self.answers.pop(0)


Route: TypeAlias = Callable[[ResponseWriter], None]


def respond(
    status: str = "200 OK",
    body: bytes = b"",
    headers: Mapping[str, str] = MappingProxyType({}),
    *,
    length: int | None = None,
) -> Route:
    """Send a complete response; `length` sets a wrong Content-Length."""
    size = len(body) if length is None else length
    return lambda writer: writer.send(
        build_head(status, {"Content-Length": str(size), **headers}) + body
    )


def build_head(status: str, headers: Mapping[str, str]) -> bytes:
    """Build the status line and headers of a response."""
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def redirect(location: str, status: str = "302 Found") -> Route:
    return respond(status, headers={"Location": location})


def respond_without_length(body: bytes) -> Route:
    """Send a body that ends with the connection."""
    return lambda writer: writer.send(b"HTTP/1.1 200 OK\r\n\r\n" + body)


def respond_chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> Route:
    """Send a chunked body with the given end."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return lambda writer: writer.send(head + body + end)


def respond_endlessly(head: bytes) -> Route:
    """Send bytes for as long as the client reads them."""

    def send(writer: ResponseWriter) -> None:
        writer.send(head)
        while not writer.closed.is_set():
            writer.send(b"x" * 65_536)

    return send


def never_respond(writer: ResponseWriter) -> None:
    """Send nothing until the server closes."""
    writer.closed.wait(DEADLINE)


@dataclass
class HttpServer:
    """Running server."""

    port: int
    scheme: str = "http"
    routes: dict[str, Route] = field(default_factory=dict)
    requests: list[ReceivedRequest] = field(default_factory=list)
    responses: list[ResponseWriter] = field(default_factory=list)
    requested_names: list[str | None] = field(default_factory=list)  # of TLS clients (SNI)
    default_route: Callable[[ReceivedRequest], Route] = lambda _: respond("404 Not Found")

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


@contextmanager
def run_http_server(context: ssl.SSLContext | None = None) -> Iterator[HttpServer]:
    """Run a server without routes; every connection has one request."""
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
        connection, _ = listening.accept()
        if closed.is_set():
            connection.close()
            return
        thread = threading.Thread(
            target=_serve, args=(connection, site, context, closed), daemon=True
        )
        threads.append(thread)
        thread.start()


def _serve(
    plain: socket.socket, site: HttpServer, context: ssl.SSLContext | None, closed: threading.Event
) -> None:
    plain.settimeout(DEADLINE)
    # Clients may disconnect at any time.
    with suppress(OSError), closing(plain):
        connection = context.wrap_socket(plain, server_side=True) if context else plain
        with closing(connection):
            request = _read_request(connection)
            site.requests.append(request)
            writer = ResponseWriter(connection, closed)
            site.responses.append(writer)
            path = request.target.partition("?")[0]
            route = site.routes.get(path) or site.default_route(request)
            route(writer)
            if isinstance(connection, ssl.SSLSocket):
                connection.unwrap()


def _read_request(connection: socket.socket) -> ReceivedRequest:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65_536)
        if not chunk:
            raise ConnectionError
        data += chunk
    first, *rest = data.decode("ascii").rstrip("\r\n").split("\r\n")
    pairs = [text.split(": ", 1) for text in rest]
    return ReceivedRequest(first.split(" ")[1], {name.lower(): value for name, value in pairs})


def make_certificate(folder: Path, host: str) -> tuple[Path, Path]:
    """Create a self-signed certificate for `host`, and its key."""
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
