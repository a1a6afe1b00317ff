"""Servers as an operator runs them: `skillhall serve` processes on one database."""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any, TypeVar

from tests.support.archives import zip_of
from tests.support.fork_server import ForkedProcess
from tests.support.servers import HttpResponse, send_request
from tests.support.skills import make_skill_md

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
DEADLINE = 120  # seconds
SKILLS = "/api/v1/skills"
PROMPTS = "/api/v1/prompts"
_POLL_INTERVAL = 0.02  # seconds
_NEVER = threading.Event()


def wait_until(condition: Callable[[], T]) -> T:
    """Poll `condition` and return its first true result."""
    deadline = time.monotonic() + DEADLINE
    while not (result := condition()):
        assert time.monotonic() < deadline, "timed out"
        _NEVER.wait(_POLL_INTERVAL)
    return result


@dataclass
class Replica:
    """Server process with its own folders."""

    folder: Path
    variables: Mapping[str, str]
    headers: dict[str, str] = field(default_factory=dict)
    port: int = 0
    command: tuple[str, ...] = (sys.executable, "-m", "skillhall")
    _process: subprocess.Popen[str] | ForkedProcess | None = None

    def start(self) -> None:
        """Start the server and wait until it is ready. A restart reuses its folders."""
        (self.folder / "run").mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            self._process = self._launch(
                ("serve", "--port", "0", "--json"),
                {
                    **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
                    "HOME": str(self.folder),
                    "SKILLHALL_CACHE_DIR": str(self.folder / "cache"),
                    "SKILLHALL_DATA_DIR": str(self.folder / "data"),
                    **self.variables,
                },
                log,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.log
        self.port = int(json.loads(line)["data"]["url"].rpartition(":")[2])

    def _launch(
        self, arguments: Sequence[str], variables: Mapping[str, str], log: IO[str]
    ) -> subprocess.Popen[str] | ForkedProcess:
        return subprocess.Popen(
            [*self.command, *arguments],
            env=variables,
            cwd=self.folder / "run",
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop the server with a signal."""
        if self._process is not None:
            self._process.send_signal(number)
            if isinstance(self._process, ForkedProcess):
                self._process.read_output(DEADLINE)
                self._process.close()
            else:
                self._process.communicate(timeout=DEADLINE)
            self._process = None

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8")

    def request(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        return send_request(self.port, method, path, body, {**self.headers, **(headers or {})})

    def import_skills(self, files: Mapping[str, bytes], query: str = "") -> HttpResponse:
        """Import the skills of an archive with these files."""
        kind = {"Content-Type": "application/zip"}
        return self.request("POST", f"{SKILLS}/import{query}", zip_of(files), kind)

    def ids(self) -> set[str]:
        """Return the ids of the listed skills."""
        return {item["id"] for item in self.request("GET", SKILLS).json["data"]["skills"]}

    def body(self, identity: str) -> str:
        """Return the instructions of a skill, or "" if it does not exist."""
        reply = self.request("GET", f"{SKILLS}/{identity}")
        return str(reply.json["data"]["body"]) if reply.status == 200 else ""

    @contextmanager
    def events(self, query: str = "") -> Iterator[Iterator[dict[str, Any]]]:
        """Yield an iterator over the server's events, which waits for the next one."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)) as connection:
            connection.request("GET", f"/api/v1/events{query}", headers=self.headers)
            response = connection.getresponse()
            assert response.status == 200
            assert response.readline().startswith(b"retry:")  # the subscription is active
            data = (text[6:] for text in iter(response.readline, b"") if text.startswith(b"data: "))
            yield map(json.loads, data)

    def get_readiness(self) -> Any:  # noqa: ANN401 - JSON
        return self.request("GET", "/readyz").json


class ForkedReplica(Replica):
    """Server that starts quickly, in a fork of a process that has imported its modules."""

    def _launch(
        self, arguments: Sequence[str], variables: Mapping[str, str], log: IO[str]
    ) -> ForkedProcess:
        return ForkedProcess(
            "skillhall",
            *arguments,
            imports=["skillhall._internal.asgi", "skillhall._internal.storage.sql.engine"],
            env=variables,
            cwd=self.folder / "run",
            stderr=log,
        )


@contextmanager
def replicas(folder: Path, **variables: str) -> Iterator[list[Replica]]:
    """Run two servers until the block ends."""
    servers: list[Replica] = [
        ForkedReplica(folder / name, variables) for name in ("first", "second")
    ]
    try:
        for server in servers:
            server.start()
        yield servers
    finally:
        for server in servers:
            server.stop(signal.SIGKILL)


def skill_files(name: str, body: str) -> dict[str, bytes]:
    """Return the files of a skill: SKILL.md, a text and a script, all with this body."""
    return {
        f"{name}/SKILL.md": make_skill_md(name, f"{name}: {body}", body),
        f"{name}/data/words.txt": body.encode(),
        f"{name}/run.sh": f"#!/bin/sh\necho {body}\n".encode(),
    }


def new_name(start: str = "skill") -> str:
    """Return a name that no other test uses."""
    return f"{start}-{secrets.token_hex(4)}"
