"""Two servers on one PostgreSQL, and ways to make a part of them hang."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import make_url

from benchmarks.harness import BenchmarkError
from tests.support.archives import zip_of
from tests.support.databases import make_postgres_database
from tests.support.freezing_server import FREEZE_FILE, NEVER
from tests.support.postgres import shared_server
from tests.support.replicas import Replica
from tests.support.skills import make_skill, make_skill_md

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 5  # seconds; also the default of the setting
DEADLINE = 120  # seconds until the servers must work again
SKILLS = 50
TOKEN_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
ZIP = {"Content-Type": "application/zip"}
_REPOSITORIES = 16

# Method, path, statuses that count as answered, body and headers of a request.
Change = tuple[str, str, tuple[int, ...], bytes, dict[str, str]]


class HangingServer:
    """Accepts connections and never answers, or closes them at once."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listening.getsockname()[1]
        self.is_hanging = False
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._open)

    def release(self) -> None:
        """Close all connections, now and from now on."""
        self.is_hanging = False
        while self._open:
            self._open.pop().close()

    def close(self) -> None:
        """Stop listening."""
        self.release()
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                connection, _ = self._listening.accept()
                self._open.append(connection)
                if not self.is_hanging:
                    self.release()


class Cluster:
    """The measured server, another one that can freeze, and their database."""

    def __init__(
        self, healthy: Replica, other: Replica, postgres: Path, hanging: HangingServer
    ) -> None:
        self.healthy = healthy
        self.other = other
        self._postgres = postgres  # its data folder
        self._hanging = hanging
        self._freeze_file = Path(other.variables[FREEZE_FILE])
        self.headers = dict(healthy.headers)
        self.skill_id = "skill-7"
        self.sign_in_form = b""
        self._session = self.new_session()  # of which the other server changes blocks

    @property
    def block(self) -> Change:
        """A block added to the session that the other server changes, too."""
        return self.block_in(self._session, (201, 503))

    @property
    def skill(self) -> Change:
        """An import of a skill. All imports wait for each other."""
        data = zip_of({"frozen/SKILL.md": make_skill_md("frozen")})
        return "POST", "/api/v1/skills/import?replace=true", (200, 201, 503), data, ZIP

    @property
    def repositories(self) -> list[str]:
        """Paths of requests for prompts of repositories that never answer."""
        url = f"http://127.0.0.1:{self._hanging.port}/{secrets.token_hex(4)}"
        return [f"/api/v1/prompts?repo={quote(f'{url}/{n}.git')}" for n in range(_REPOSITORIES)]

    def block_in(self, session: str, statuses: tuple[int, ...] = (201,)) -> Change:
        """A block added to a session."""
        body = b'{"type": "note", "content": "Hello."}'
        return "POST", f"/api/v1/sessions/{session}/blocks", statuses, body, JSON

    def new_session(self) -> str:
        """Create a session and return its id."""
        reply = self.healthy.request("POST", "/api/v1/sessions", {"name": secrets.token_hex(4)})
        if reply.status != 201:
            raise BenchmarkError(f"a session could not be created: {reply.status}")
        return str(reply.json["data"]["id"])

    def count_statements(self, change: Change) -> int:
        """Return how many statements a change runs on the server that can freeze."""
        self._send_to_other(change)  # the first one may have to create something
        self._freeze_file.write_text(str(NEVER))
        self._send_to_other(change)
        return int(self._freeze_file.with_suffix(".count").read_text())

    @contextmanager
    def freeze_server(self, change: Change, statement: int) -> Iterator[None]:
        """Freeze the other server after this statement of a change."""
        self._freeze_file.write_text(str(statement))
        sender = threading.Thread(target=self._send_to_other, args=[change], daemon=True)
        sender.start()
        while _process_state(self.other.pid) != "T":
            if not sender.is_alive():
                raise BenchmarkError(f"the change had no statement {statement}")
            time.sleep(0.01)
        try:
            yield
        finally:
            os.kill(self.other.pid, signal.SIGCONT)
            sender.join()

    @contextmanager
    def freeze_database(self) -> Iterator[None]:
        """Freeze all processes of PostgreSQL."""
        postmaster = int((self._postgres / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)  # first, so that it starts no more
        stopped = [postmaster, *_list_children(postmaster)]
        for process in stopped[1:]:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in reversed(stopped):
                os.kill(process, signal.SIGCONT)

    @contextmanager
    def hang(self) -> Iterator[None]:
        """Let repositories and models hang that are on the hanging server."""
        self._hanging.is_hanging = True
        try:
            yield
        finally:
            self._hanging.release()

    def wait_until_steady(self) -> None:
        """Wait until the requests to what hangs have arrived there.

        Starting them is ordinary work, such as opening a chat, and is not measured.
        """
        before = -1
        while before != self._hanging.connections:
            before = self._hanging.connections
            time.sleep(1)

    def wait_until_recovered(self) -> None:
        """Wait until both servers accept writes quickly again."""
        end = time.monotonic() + DEADLINE
        for server in (self.healthy, self.other):
            while time.monotonic() < end:
                started = time.monotonic()
                with suppress(OSError):
                    reply = server.request("POST", "/api/v1/sessions", {"name": "recovered"})
                    if reply.status == 201 and time.monotonic() - started < 1:
                        break
                time.sleep(0.1)
            else:
                raise BenchmarkError("a server did not recover")

    def _send_to_other(self, change: Change) -> None:
        method, path, _, body, headers = change
        with suppress(OSError, HTTPException):
            self.other.request(method, path, body, headers)


@contextmanager
def start_cluster(folder: Path) -> Iterator[Cluster]:
    """Start PostgreSQL and both servers, with some skills."""
    prompts = folder / "prompts"
    for number in range(SKILLS):
        make_skill(prompts, f"prompt-{number}")
    hanging = HangingServer()
    with shared_server(folder) as postgres:
        database = make_postgres_database(postgres, "stalls")
        variables = {
            "SKILLHALL_DATABASE_URL": database,
            "SKILLHALL_DATABASE_TIMEOUT": str(TIMEOUT),
            "SKILLHALL_AUTH_TOKEN": secrets.token_urlsafe(32),
            "SKILLHALL_PROMPTS_REPO": str(prompts),
            "SKILLHALL_ALLOW_NETWORKS": "127.0.0.0/8",
            "SKILLHALL_MODEL": "openai-chat:hanging",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{hanging.port}/v1",
            "OPENAI_API_KEY": "sk-none",
            FREEZE_FILE: str(folder / "freeze"),
            "PYTHONPATH": str(ROOT),
        }
        # A token of the database, so that the operator's token does not hide what checking costs.
        token = _new_token(folder, variables)
        headers = {"Authorization": f"Bearer {token}"}
        servers = [
            Replica(folder / "healthy", variables, headers),
            Replica(
                folder / "other",
                variables,
                headers,
                command=(sys.executable, "-m", "tests.support.freezing_server"),
            ),
        ]
        try:
            for server in servers:
                server.start()
            imported = {f"skill-{n}/SKILL.md": make_skill_md(f"skill-{n}") for n in range(SKILLS)}
            reply = servers[0].import_skills(imported)
            if reply.status != 201:
                raise BenchmarkError(f"the skills could not be imported: {reply.status}")
            data = Path(str(make_url(postgres).query["host"])) / "data"
            cluster = Cluster(servers[0], servers[1], data, hanging)
            cluster.sign_in_form = f"token={token}".encode()
            # The first message imports the packages for chats.
            servers[0].request("POST", "/playground/send", b"message=Hello.", TOKEN_FORM)
            yield cluster
        finally:
            for server in servers:
                server.stop(signal.SIGKILL)
            hanging.close()


def _new_token(folder: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "skillhall", "token", "new", "benchmark", "--json"],
        env={**os.environ, **variables, "HOME": str(folder)},
        capture_output=True,
        check=True,
    )
    return str(json.loads(done.stdout)["data"]["token"])


def _process_state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _list_children(pid: int) -> list[int]:
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                children.append(int(stat.parent.name))
    return children
