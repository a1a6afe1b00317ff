"""Test servers on a loopback socket, and a simple HTTP client."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any, NamedTuple

from skillhall._internal.asgi import ServerProcess, Services, listen
from skillhall._internal.policy.access.access_scopes import DEFAULT_SCOPES, OPERATOR
from skillhall._internal.settings import Secret, ServerSettings, Settings
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.credential_cache import UseRecorder
from skillhall._internal.storage.records import StoredToken
from skillhall._internal.storage.sign_ins import SignIns
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.token_rows import SqlSignInTable
from tests.support.databases import TIMESTAMP
from tests.support.prompt_services import MemoryPromptService

DEADLINE = 120  # seconds; a longer wait means that something hangs
TOKEN = "correct-horse-battery-staple"  # noqa: S105 - only for tests


class MemoryTokens:
    """In-memory implementation of `AcceptedTokens`."""

    def __init__(self, *texts: str) -> None:
        self._tokens: list[StoredToken] = []
        self._listeners: list[Callable[[], None]] = []
        self.used: list[str] = []
        for text in texts:
            self.add(text)

    def add(
        self,
        text: str,
        scopes: tuple[str, ...] = DEFAULT_SCOPES,
        expires: str = "",
        owner: str = OPERATOR,
    ) -> None:
        digest = sha256_hex(text.encode())
        self._tokens.append(
            StoredToken(digest[:8], text, digest, "", owner, scopes, expires or None)
        )

    def find(self, text: bytes) -> StoredToken | None:
        return next((t for t in self._tokens if t.digest == sha256_hex(text)), None)

    def find_by_id(self, identity: str) -> StoredToken | None:
        return next((t for t in self._tokens if t.id == identity), None)

    def record_use(self, identity: str) -> None:
        self.used.append(identity)

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        self._listeners.append(subscriber)

    def revoke(self, text: str) -> None:
        self._tokens = [token for token in self._tokens if token.label != text]
        for listener in self._listeners:
            listener()


class HttpResponse(NamedTuple):
    """A response with its complete body."""

    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])

    @property
    def message(self) -> str:
        return str(self.json["error"]["message"])


@dataclass
class RunningServer:
    """A server that accepts requests."""

    port: int
    server: ServerProcess
    headers: dict[str, str] = field(default_factory=dict)  # sent with every request

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        """Send a request on a new connection; a body that is not bytes is sent as JSON."""
        return send_request(self.port, method, path, body, {**self.headers, **(headers or {})})

    def send_raw(self, data: bytes) -> bytes:
        """Send raw bytes and return the response."""
        with self.connect() as connection:
            connection.sendall(data)
            return read_response(connection)

    def connect(self) -> socket.socket:
        """Open a connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE)

    def stop(self) -> None:
        """Stop the server, as SIGTERM does."""
        self.server.should_exit = True


def send_request(
    port: int, method: str, path: str, body: object, headers: Mapping[str, str]
) -> HttpResponse:
    """Send a request on a new connection; a body that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    sent = dict(headers)
    if data is not None:
        sent.setdefault("Content-Type", "application/json")
    with closing(HTTPConnection("127.0.0.1", port, timeout=DEADLINE)) as connection:
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        return HttpResponse(response.status, response.headers, response.read())


def read_response(connection: socket.socket) -> bytes:
    """Read a response with its body, or until the server closes the connection."""
    data = b""
    while b"\r\n\r\n" not in data or len(data) < _expected_length(data):
        chunk = connection.recv(65_536)
        if not chunk:
            break
        data += chunk
    return data


def _expected_length(data: bytes) -> int:
    head, _, _ = data.partition(b"\r\n\r\n")
    for text in head.lower().split(b"\r\n"):
        if text.startswith(b"content-length:"):
            return len(head) + 4 + int(text.partition(b":")[2])
    return len(data) + 1


def make_settings(**server: Any) -> Settings:  # noqa: ANN401 - any field of the settings
    """Return settings of a server on a free local port."""
    return Settings(
        working_directory="/nowhere",
        cache_directory="/nowhere",
        server=ServerSettings(**{"port": "0", **server}),
    )


@contextmanager
def open_sign_ins(folder: Path, clock: Callable[[], float] = time.time) -> Iterator[SignIns]:
    """Open the sign-ins of a database in a folder."""
    database = Database(build_sqlite_url(str(folder / "sign-ins.db")), TIMESTAMP)
    recorder, table = UseRecorder(clock), SqlSignInTable(database)
    with (
        closing(database),
        closing(recorder),
        closing(SignIns(table, recorder, clock)) as sign_ins,
    ):
        yield sign_ins


@contextmanager
def run_server(
    prompt_service: MemoryPromptService | None = None,
    settings: Settings | None = None,
    services: Services | None = None,
) -> Iterator[RunningServer]:
    """Run a server in a thread for the duration of the context."""
    settings = settings or make_settings()
    services = services or Services(prompt_service or MemoryPromptService())
    with listen(settings.server) as listening:
        started = threading.Event()
        server = ServerProcess(services, settings, started.set)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        assert started.wait(DEADLINE)
        token = settings.server.auth_token
        headers = {"Authorization": f"Bearer {token.reveal()}"} if token else {}
        running = RunningServer(listening.getsockname()[1], server, headers)
        try:
            yield running
        finally:
            running.stop()
            thread.join(DEADLINE)
    assert not thread.is_alive()


def make_token_settings(**server: Any) -> Settings:  # noqa: ANN401 - any field of the settings
    """Return settings of a server that requires a token."""
    return make_settings(auth_token=Secret(TOKEN), **server)
