"""Servers as an operator runs them: real processes of `skillhall serve` on one database."""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar

from tests.support.archives import zip_of
from tests.support.servers import HttpResponse, send_request
from tests.support.skills import make_skill_md

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
DEADLINE = 120  # seconds; whatever takes longer has failed
SKILLS = "/api/v1/skills"
PROMPTS = "/api/v1/prompts"
_POLL_INTERVAL = 0.02  # seconds between two looks
_NEVER = threading.Event()


def wait_until(condition: Callable[[], T]) -> T:
    """What `look` gives as soon as that is something."""
    ended = time.monotonic() + DEADLINE
    while not (found := condition()):
        assert time.monotonic() < ended, "it did not happen"
        _NEVER.wait(_POLL_INTERVAL)
    return found


@dataclass
class Replica:
    """One server: its process, its own folders, and what is asked of it."""

    folder: Path
    variables: Mapping[str, str]
    headers: dict[str, str] = field(default_factory=dict)
    port: int = 0
    _process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it serves; a second start finds what the first one left."""
        (self.folder / "work").mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "skillhall", "serve", "--port", "0", "--json"],
                env={
                    **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
                    "HOME": str(self.folder),
                    "SKILLHALL_CACHE_DIR": str(self.folder / "cache"),
                    "SKILLHALL_DATA_DIR": str(self.folder / "data"),
                    **self.variables,
                },
                cwd=self.folder / "work",
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.log
        self.port = int(json.loads(line)["data"]["url"].rpartition(":")[2])

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it, by a signal."""
        if self._process is not None:
            self._process.send_signal(number)
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
        """The ids of the skills that it lists."""
        return {item["id"] for item in self.request("GET", SKILLS).json["data"]["skills"]}

    def body(self, identity: str) -> str:
        """The instructions of a skill; "" without it."""
        reply = self.request("GET", f"{SKILLS}/{identity}")
        return str(reply.json["data"]["body"]) if reply.status == 200 else ""

    @contextmanager
    def events(self, query: str = "") -> Iterator[Iterator[dict[str, Any]]]:
        """The events that it tells of, as they come."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)) as line:
            line.request("GET", f"/api/v1/events{query}", headers=self.headers)
            answer = line.getresponse()
            assert answer.status == 200
            assert answer.readline().startswith(b"retry:")  # from here on it listens
            data = (text[6:] for text in iter(answer.readline, b"") if text.startswith(b"data: "))
            yield map(json.loads, data)

    def get_readiness(self) -> Any:  # noqa: ANN401 - whatever it says
        return self.request("GET", "/readyz").json


@contextmanager
def replicas(folder: Path, **variables: str) -> Iterator[list[Replica]]:
    """Two servers that run until the block is left."""
    made = [Replica(folder / name, variables) for name in ("one", "other")]
    try:
        for item in made:
            item.start()
        yield made
    finally:
        for item in made:
            item.stop(signal.SIGKILL)


def skill_files(name: str, body: str) -> dict[str, bytes]:
    """A skill with two more files, one of which is a program; all say the same."""
    return {
        f"{name}/SKILL.md": make_skill_md(name, f"{name}: {body}", body),
        f"{name}/data/words.txt": body.encode(),
        f"{name}/run.sh": f"#!/bin/sh\necho {body}\n".encode(),
    }


def new_name(start: str = "skill") -> str:
    """A name that no other test has."""
    return f"{start}-{secrets.token_hex(4)}"
