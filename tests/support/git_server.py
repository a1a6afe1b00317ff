"""Git repositories, and a local smart-HTTP server for them."""

import base64
import hashlib
import io
import os
import ssl
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from tests.support.http_server import ReceivedRequest, ResponseWriter, Route

DEADLINE = 120  # seconds; a slower response counts as hanging
LINK, SUBMODULE, EXECUTABLE, REGULAR, FOLDER = "120000", "160000", "100755", "100644", "40000"
_PATH = os.environ["PATH"]  # before a test prepends a fake git
_AUTHOR = "Ada <ada@example.com> 1700000000 +0000"


class GitRepo:
    """Bare repository, written object by object: fast, and allows invalid content."""

    def __init__(self, folder: Path, object_format: str = "sha1") -> None:
        self.folder = folder
        self._format = object_format
        for name in ("objects", "refs/heads", "refs/tags"):
            (folder / name).mkdir(parents=True)
        (folder / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
        version = f"[core]\nbare = true\nrepositoryformatversion = {int(object_format != 'sha1')}\n"
        if object_format != "sha1":
            version += f"[extensions]\nobjectFormat = {object_format}\n"
        (folder / "config").write_text(version, encoding="ascii")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "--git-dir", str(self.folder), *arguments],
            env=_environment(),
            check=True,
            capture_output=True,
            timeout=DEADLINE,
        )
        return done.stdout.decode().strip()

    def blob(self, data: bytes) -> str:
        return self._object("blob", data)

    def tree(self, entries: Iterable[tuple[str, str, str]]) -> str:
        """Write a tree of (mode, id, name), valid or not."""
        lines = []
        for mode, object_id, name in entries:
            raw = name.encode("utf-8", "surrogateescape")
            order = raw + b"/" if mode == FOLDER else raw
            lines.append((order, b"%s %s\0" % (mode.encode(), raw) + bytes.fromhex(object_id)))
        return self._object("tree", b"".join(line for _, line in sorted(lines)))

    def files(self, files: Mapping[str, bytes], modes: Mapping[str, str] | None = None) -> str:
        """Write a tree of files. A link's data is its target, a submodule's its commit."""
        entries, folders = [], dict[str, dict[str, bytes]]()
        modes = modes or {}
        for path, data in files.items():
            first, slash, rest = path.partition("/")
            if slash:
                folders.setdefault(first, {})[rest] = data
                continue
            mode = modes.get(path, REGULAR)
            entries.append((mode, data.decode() if mode == SUBMODULE else self.blob(data), first))
        for name, inner in folders.items():
            start = f"{name}/"
            nested = {p.removeprefix(start): m for p, m in modes.items() if p.startswith(start)}
            entries.append((FOLDER, self.files(inner, nested), name))
        return self.tree(entries)

    def commit_tree(self, tree: str, ref: str = "refs/heads/main", parent: str = "") -> str:
        """Commit a tree and move the ref to it."""
        parents = f"parent {parent}\n" if parent else ""
        people = f"author {_AUTHOR}\ncommitter {_AUTHOR}\n"
        commit = self._object("commit", f"tree {tree}\n{parents}{people}\nA change\n".encode())
        path = self.folder / ref
        path.parent.mkdir(parents=True, exist_ok=True)
        # Atomic, as in git: a concurrent reader gets the old commit or the new one.
        lock = path.with_name(f"{path.name}.lock")
        lock.write_text(f"{commit}\n", encoding="ascii")
        lock.replace(path)
        return commit

    def commit(
        self,
        files: Mapping[str, bytes],
        modes: Mapping[str, str] | None = None,
        *,
        ref: str = "refs/heads/main",
        parent: str = "",
    ) -> str:
        """Commit exactly these files and move the ref to the commit."""
        return self.commit_tree(self.files(files, modes), ref, parent)

    def _object(self, kind: str, data: bytes) -> str:
        content = f"{kind} {len(data)}\0".encode() + data
        name = hashlib.new(self._format, content).hexdigest()
        path = self.folder / "objects" / name[:2] / name[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(content, 1))
        return name


def _environment() -> dict[str, str]:
    plain = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    people = {f"GIT_COMMITTER_{name}": "ada@example.com" for name in ("NAME", "EMAIL")}
    return {"PATH": _PATH, **plain, **people}


def git_repo(
    folder: Path, files: Mapping[str, bytes], modes: Mapping[str, str] | None = None
) -> GitRepo:
    """Create a repository with one commit of these files on `main`."""
    repo = GitRepo(folder)
    repo.commit(files, modes)
    return repo


class GitRequest(NamedTuple):
    """Received request; header names are lowercase."""

    method: str
    target: str
    headers: Mapping[str, str]


@dataclass
class GitServer:
    """Running server and its behavior."""

    root: Path
    port: int = 0
    scheme: str = "http"
    token: str = ""  # required in every request
    login: str = ""  # Authorization header required instead
    status: int = 0  # replaces every response
    redirects: dict[str, str] = field(default_factory=dict)  # by path prefix
    override: Callable[[ReceivedRequest], Route | None] = lambda _: None  # replaces git's response
    filters: bool = True
    newest_protocol: bool = True
    requests: list[GitRequest] = field(default_factory=list)
    bytes_sent: int = 0  # of bodies
    is_waiting: threading.Event = field(default_factory=threading.Event)  # a request is held
    release_event: threading.Event | None = None  # requests are held until it is set
    closed: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}/{path}"

    @property
    def authorization(self) -> str:
        """The header that clients must send; "" if the repositories are public."""
        return self.login or (_basic(self.token) if self.token else "")


@contextmanager
def run_git_server(root: Path, context: ssl.SSLContext | None = None) -> Iterator[GitServer]:
    """Serve the repositories below `root`, with TLS if there is a context."""
    site = GitServer(root, scheme="https" if context else "http")

    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"site": site}))
    site.port = server.server_address[1]
    if context:
        # Handshakes run in the connection threads, so that a bad one does not block the others.
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.closed.set()
        server.shutdown()
        server.server_close()
        thread.join(DEADLINE)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # closing waits for them, so that none runs into the next test

    def server_bind(self) -> None:
        """Bind without a DNS lookup of this machine's name."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect, as many tests make them."""


class _Handler(BaseHTTPRequestHandler):
    site: GitServer
    timeout = DEADLINE

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self._body())

    def log_message(self, *_: object) -> None:
        """Log nothing; requests are in `site.requests`."""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = io.BytesIO()
        while size := int(self.rfile.readline(), 16):
            body.write(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return body.getvalue()

    def _serve(self, body: bytes) -> None:
        site = self.site
        headers = {name.lower(): value for name, value in self.headers.items()}
        with site.lock:
            site.requests.append(GitRequest(self.command, self.path, headers))
        if site.release_event is not None:
            site.is_waiting.set()
            while not site.release_event.wait(0.02) and not site.closed.is_set():
                pass
        if site.closed.is_set():
            return
        location = next(
            (target for start, target in site.redirects.items() if self.path.startswith(start)), ""
        )
        if (route := site.override(ReceivedRequest(self.path, headers))) is not None:
            with suppress(OSError):
                route(ResponseWriter(self.connection, site.closed))
        elif site.status:
            self._send_response(site.status, {}, b"")
        elif location:
            self._send_response(301, {"Location": f"{location}/info/refs{self._query()}"}, b"")
        elif site.authorization and headers.get("authorization") != site.authorization:
            self._send_response(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
        else:
            self._backend(body)

    def _query(self) -> str:
        return self.path.partition("/info/refs")[2]

    def _backend(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        site = self.site
        environment = {
            **_environment(),
            "GIT_PROJECT_ROOT": str(site.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", "") if site.newest_protocol else "",
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "uploadpack.allowFilter",
            "GIT_CONFIG_VALUE_0": str(site.filters).lower(),
            "GIT_CONFIG_KEY_1": "safe.directory",
            "GIT_CONFIG_VALUE_1": "*",
        }
        result = subprocess.run(
            ["git", "http-backend"],
            input=body,
            env=environment,
            check=False,
            capture_output=True,
            timeout=DEADLINE,
        )
        head, _, content = result.stdout.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if line]
        headers = dict(pair for pair in lines if len(pair) == 2)
        status = int(headers.pop("Status", "200").split(" ")[0])
        self._send_response(status, headers, content)

    def _send_response(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        with self.site.lock:
            self.site.bytes_sent += len(body)
        with suppress(OSError):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


def _basic(token: str) -> str:
    return f"Basic {base64.b64encode(f'x-access-token:{token}'.encode()).decode()}"
