"""Load test: while commits are pushed, no response to a client mixes two commits."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.support.git_server import GitRepo, git_repo, run_git_server
from tests.support.servers import HttpResponse, RunningServer
from tests.support.team_server import (
    LIST,
    list_descriptions,
    list_prompt_texts,
    make_commit_files,
    team_server,
    team_settings,
)

CLIENTS = 16
REPOSITORIES = 3
OK = 200
# The requests of a client, in proportions similar to real use.
KINDS = ("list", "hello", "pdf", "list", "pdf", "hello", "list", "pdf", "hello", "refresh")


class ServedRepo:
    """A repository, the query that selects it, and the number of each commit."""

    def __init__(self, repo: GitRepo, query: str) -> None:
        self.repo = repo
        self.query = query
        self.label = "override " if query else ""
        self.commit_numbers = {repo.git("rev-parse", "main"): 0}
        self._lock = threading.Lock()

    def push(self) -> int:
        """Push a commit and return its number; every second one has no parent."""
        with self._lock:
            number = len(self.commit_numbers)
            parent = list(self.commit_numbers)[-1] if number % 2 else ""
            self.commit_numbers[self.repo.commit(make_commit_files(number), parent=parent)] = number
            return number


@dataclass
class LoadResult:
    """Responses that the clients received."""

    responses: Counter[tuple[str, int]] = field(default_factory=Counter)  # by kind and status
    unexpected: list[str] = field(default_factory=list)
    inconsistent: list[str] = field(default_factory=list)
    pushes: int = 0

    @property
    def passed(self) -> bool:
        """Whether there were responses, and all were correct."""
        return bool(self.responses) and not self.unexpected and not self.inconsistent


@dataclass(frozen=True)
class ObservedResponse:
    """A successful response: its commit, its texts and the oldest allowed commit."""

    repo: ServedRepo
    kind: str
    commit: str
    texts: frozenset[str]
    min_number: int

    def find_problem(self) -> str:
        """Return how the response contradicts the pushed commits, or ""."""
        number = self.repo.commit_numbers.get(self.commit, -1)
        if number < self.min_number:
            return f"{self.kind}: {number} is older than {self.min_number}"
        if self.texts - {f"commit {number}"}:
            return f"{self.kind}: {sorted(self.texts)} in commit {number}"
        return ""


def run_clients(
    server: RunningServer, repos: list[ServedRepo], should_continue: Callable[[int], bool]
) -> LoadResult:
    """Run clients until `should_continue` is false for their number of requests."""
    result, lock, observed = LoadResult(), threading.Lock(), set[ObservedResponse]()

    def client(seat: int) -> None:
        choices, turn = random.Random(seat), 0  # noqa: S311 - not for secrets
        while should_continue(turn):
            kind = KINDS[(seat + turn) % len(KINDS)]
            repo = choices.choice(repos)
            oldest = repo.push() if kind == "refresh" else 0
            reply = send_request(server, kind, repo)
            with lock:
                result.responses[f"{repo.label}{kind}", reply.status] += 1
                if reply.status != OK or "stale" in reply.json["meta"]:
                    result.unexpected.append(f"{kind}: {reply.status} {reply.body[:300]!r}")
                else:
                    observed.add(_observe(repo, kind, reply.json, oldest))
            turn += 1

    with ThreadPoolExecutor(CLIENTS) as pool:
        for future in [pool.submit(client, seat) for seat in range(CLIENTS)]:
            future.result()
    # The numbers of all commits are known only after the last push.
    result.inconsistent = [problem for each in observed if (problem := each.find_problem())]
    result.pushes = sum(len(repo.commit_numbers) - 1 for repo in repos)
    return result


def send_request(server: RunningServer, kind: str, repo: ServedRepo) -> HttpResponse:
    """Send a request of this kind."""
    if kind == "list":
        return server.request("GET", f"{LIST}{repo.query}")
    return server.request("POST", f"{LIST}/{kind}{repo.query}")


def _observe(repo: ServedRepo, kind: str, response: Any, oldest: int) -> ObservedResponse:  # noqa: ANN401 - JSON
    texts = set[str]()
    if kind == "list":
        texts = list_descriptions(response["data"]) or {"nothing"}
    elif kind != "refresh":
        texts = list_prompt_texts(response["data"])
    return ObservedResponse(
        repo, kind, response["meta"].get("commit", ""), frozenset(texts), oldest
    )


@contextmanager
def run_loaded_server(folder: Path) -> Iterator[tuple[RunningServer, list[ServedRepo]]]:
    """Run a server with one configured repository; queries name two others."""
    root = folder / "served"
    repos = [git_repo(root / f"team/h{n}.git", make_commit_files(0)) for n in range(REPOSITORIES)]
    with run_git_server(root) as site:
        urls = [site.url(f"team/h{n}.git") for n in range(REPOSITORIES)]
        queries = ["", *(f"?repo={quote(url, safe='')}" for url in urls[1:])]
        served = [ServedRepo(repo, query) for repo, query in zip(repos, queries, strict=True)]
        with team_server(team_settings(folder, urls[0])) as server:
            yield server, served
