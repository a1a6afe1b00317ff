"""A busy server for minutes: memory, file descriptors and threads must stay flat.

Clients read, write, listen to events and refresh a repository. The first third of the time warms
up caches and pools. After that, the server's resident memory, descriptors and threads are sampled
every second. For each, the median of the last third may differ from the median of the second
third by at most 5 %. Medians are used, because single samples depend on what runs at that moment.
"""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.backup import fill
from tests.support.git_server import GitRepo, run_git_server
from tests.support.mcp_clients import run_http_client
from tests.support.replicas import PROMPTS, SKILLS, Replica, skill_files
from tests.support.servers import HttpResponse
from tests.support.team_server import make_commit_files

SKILL_COUNT, SESSION_COUNT = 10_000, 100
READERS, WRITERS, STREAMS = 3, 2, 6
TOLERANCE = 0.05
STREAM_SECONDS = 20.0
SESSIONS = "/api/v1/sessions"
_PAUSE = 0.05  # seconds between the requests of a client
_REFRESH_PAUSE = 2.0
_SHOWN = 5  # unexpected responses
_STATUSES = frozenset({200, 201})


class Sample(NamedTuple):
    """Resources of the server at one moment."""

    memory_kb: int
    descriptors: int
    threads: int


@dataclass
class SoakResult:
    """Responses and samples of a run."""

    responses: Counter[str] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def find_drift(self, name: str) -> tuple[float, float, float]:
        """Return the medians of the second and last third, and the relative difference."""
        values = [getattr(sample, name) for sample in self.samples]
        half = len(values) // 2
        before, after = float(median(values[:half])), float(median(values[half:]))
        return before, after, (after - before) / before

    @property
    def passed(self) -> bool:
        """Whether every response was expected and all resources stayed flat."""
        drifts = [abs(self.find_drift(name)[2]) for name in Sample._fields]
        return not self.unexpected and max(drifts) <= TOLERANCE


def run(seconds: float) -> bool:
    """Print the results and return whether the server stayed flat."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        result = _soak(Path(folder), seconds)
    total = result.responses.total()
    print(f"soak, {seconds:g} s: {SKILL_COUNT:,} skills, {total} requests")
    for kind, count in sorted(result.responses.items()):
        print(f"  {kind:<16} {count:>7}")
    for problem in result.unexpected[:_SHOWN]:
        print(f"  {problem}")
    for name in Sample._fields:
        before, after, drift = result.find_drift(name)
        print(f"  {name:<12} {before:>10,.0f} {after:>10,.0f}  {drift:+.1%}")
    verdict = "PASS" if result.passed else "FAIL"
    print(f"unexpected: {len(result.unexpected)} {verdict}", flush=True)
    return result.passed


def _soak(folder: Path, seconds: float) -> SoakResult:
    repo = GitRepo(folder / "served/acme/prompts.git")
    repo.commit(make_commit_files(0))
    with run_git_server(folder / "served") as site:
        variables = {
            "SKILLHALL_ALLOW_NETWORKS": "127.0.0.0/8",
            "SKILLHALL_PROMPTS_REPO": site.url("acme/prompts.git"),
        }
        server = Replica(folder / "server", variables)
        fill(server, SKILL_COUNT, SESSION_COUNT)
        server.start()
        try:
            clients = _Clients(server, repo)
            return clients.run(seconds)
        finally:
            server.stop()


class _Clients:
    """Threads with clients of one server."""

    def __init__(self, server: Replica, repo: GitRepo) -> None:
        self._server = server
        self._repo = repo
        self._result = SoakResult()
        self._stopped = threading.Event()
        self._names = itertools.count()

    def run(self, seconds: float) -> SoakResult:
        """Run all clients and sample the server after the first third."""
        works = [
            *([self._read] * READERS),
            *([self._write] * WRITERS),
            *([self._listen] * STREAMS),
            self._use_mcp,
            self._refresh,
        ]
        threads = [threading.Thread(target=self._repeat, args=(work,)) for work in works]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        self._stopped.wait(seconds / 3)
        while time.monotonic() - started < seconds:
            self._result.samples.append(_read_sample(self._server.pid))
            self._stopped.wait(1.0)
        self._stopped.set()
        while any(thread.is_alive() for thread in threads):
            # Clients that wait for an event end with the next one.
            self._server.request("POST", SESSIONS, {"name": "last"})
            time.sleep(_PAUSE)
        return self._result

    def _repeat(self, work: Callable[[random.Random], None]) -> None:
        choice = random.Random(next(self._names))
        while not self._stopped.is_set():
            try:
                work(choice)
            except (OSError, HTTPException, AssertionError, KeyError) as error:
                if not self._stopped.is_set():
                    self._result.unexpected.append(f"{work.__name__}: {error!r}")
            self._stopped.wait(_PAUSE)

    def _request(self, kind: str, method: str, path: str, body: object = None) -> HttpResponse:
        # The version of a new session or block is 1.
        response = self._server.request(method, path, body, {"If-Match": '"1"'})
        self._result.responses[kind] += 1
        if response.status not in _STATUSES:
            text = f"{method} {path}: {response.status} {response.body[:200]!r}"
            self._result.unexpected.append(text)
        return response

    def _read(self, choice: random.Random) -> None:
        name = f"skill-{choice.randrange(SKILL_COUNT):05}"
        paths = {
            "skill": f"{SKILLS}/{name}",
            "file": f"{SKILLS}/{name}/files/SKILL.md",
            "list": f"{SKILLS}?cursor={name}",
            "search": f"{SKILLS}?q={name}",
            "page": f"/skill/{name}",
            "pages": "/skills",
            "prompts": PROMPTS,
            "sessions": SESSIONS,
        }
        kind = choice.choice([*paths])
        self._request(kind, "GET", paths[kind])

    def _write(self, choice: random.Random) -> None:
        """Add and delete a skill, a session and a block: the totals stay the same."""
        name = f"written-{next(self._names)}"
        reply = self._server.import_skills(skill_files(name, f"Body {choice.random()}"))
        self._result.responses["import"] += 1
        if reply.status not in _STATUSES:
            self._result.unexpected.append(f"import: {reply.status} {reply.body[:200]!r}")
        self._request("delete skill", "DELETE", f"{SKILLS}/{name}")
        session = self._request("add session", "POST", SESSIONS, {"name": name}).json["data"]["id"]
        block = {"type": "note", "content": "A note."}
        self._request("add block", "POST", f"{SESSIONS}/{session}/blocks", block)
        self._request("delete session", "DELETE", f"{SESSIONS}/{session}")

    def _listen(self, _: random.Random) -> None:
        """Read events for a while, then connect again. Writers make the events."""
        end = time.monotonic() + STREAM_SECONDS
        with self._server.events() as stream:
            self._result.responses["stream"] += 1
            for _event in stream:
                if time.monotonic() > end or self._stopped.is_set():
                    return

    def _use_mcp(self, choice: random.Random) -> None:
        name = f"skill-{choice.randrange(SKILL_COUNT):05}"
        uri = f"skill://{name}/SKILL.md"
        run_http_client(self._server.port, lambda client: client.read_resource(uri))
        self._result.responses["MCP read"] += 1

    def _refresh(self, _: random.Random) -> None:
        self._repo.commit(make_commit_files(next(self._names)))
        self._request("refresh", "POST", f"{PROMPTS}/refresh")
        self._stopped.wait(_REFRESH_PAUSE)


def _read_sample(pid: int) -> Sample:
    process = Path(f"/proc/{pid}")
    fields = dict(
        line.split(":", 1) for line in (process / "status").read_text("ascii").splitlines()
    )
    descriptors = len([*(process / "fd").iterdir()])
    return Sample(int(fields["VmRSS"].split()[0]), descriptors, int(fields["Threads"]))
