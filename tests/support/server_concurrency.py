"""Many clients at one server while commits are pushed: does every answer come from one commit?"""

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
# What a client does in turn: mostly what clients do most.
KINDS = ("list", "hello", "pdf", "list", "pdf", "hello", "list", "pdf", "hello", "refresh")


class ServedRepo:
    """One repository, the query that asks for it, and the number of each of its commits."""

    def __init__(self, repo: GitRepo, query: str) -> None:
        self.repo = repo
        self.query = query
        self.label = "override " if query else ""
        self.commit_numbers = {repo.git("rev-parse", "main"): 0}
        self._lock = threading.Lock()

    def push(self) -> int:
        """The number of a new commit; every other one has a history of its own."""
        with self._lock:
            number = len(self.commit_numbers)
            parent = list(self.commit_numbers)[-1] if number % 2 else ""
            self.commit_numbers[self.repo.commit(make_commit_files(number), parent=parent)] = number
            return number


@dataclass
class LoadResult:
    """What the clients saw."""

    responses: Counter[tuple[str, int]] = field(default_factory=Counter)  # by kind and status
    unexpected: list[str] = field(default_factory=list)
    inconsistent: list[str] = field(default_factory=list)
    pushes: int = 0

    @property
    def passed(self) -> bool:
        """Whether there were answers, and nothing was wrong with any."""
        return bool(self.responses) and not self.unexpected and not self.inconsistent


@dataclass(frozen=True)
class ObservedResponse:
    """What one good answer said: its commit, everything it showed, and the oldest it may be."""

    repo: ServedRepo
    kind: str
    commit: str
    texts: frozenset[str]
    min_number: int

    def find_problem(self) -> str:
        """How it contradicts itself or what was pushed, if it does."""
        number = self.repo.commit_numbers.get(self.commit, -1)
        if number < self.min_number:
            return f"{self.kind}: {number} is older than {self.min_number}"
        if self.texts - {f"commit {number}"}:
            return f"{self.kind}: {sorted(self.texts)} in commit {number}"
        return ""


def run_clients(
    server: RunningServer, repos: list[ServedRepo], should_continue: Callable[[int], bool]
) -> LoadResult:
    """What clients see who each ask while `goes_on`, told how often they have asked."""
    tally, gate, seen = LoadResult(), threading.Lock(), set[ObservedResponse]()

    def client(seat: int) -> None:
        choices, turn = random.Random(seat), 0  # noqa: S311 - no secret
        while should_continue(turn):
            kind = KINDS[(seat + turn) % len(KINDS)]
            stock = choices.choice(repos)
            oldest = stock.push() if kind == "refresh" else 0
            reply = send_request(server, kind, stock)
            with gate:
                tally.responses[f"{stock.label}{kind}", reply.status] += 1
                if reply.status != OK or "stale" in reply.json["meta"]:
                    tally.unexpected.append(f"{kind}: {reply.status} {reply.body[:300]!r}")
                else:
                    seen.add(_observe(stock, kind, reply.json, oldest))
            turn += 1

    with ThreadPoolExecutor(CLIENTS) as pool:
        for one in [pool.submit(client, seat) for seat in range(CLIENTS)]:
            one.result()
    # Only now is the number of every commit known for certain.
    tally.inconsistent = [problem for problem in (one.find_problem() for one in seen) if problem]
    tally.pushes = sum(len(stock.commit_numbers) - 1 for stock in repos)
    return tally


def send_request(server: RunningServer, kind: str, repo: ServedRepo) -> HttpResponse:
    """One request of a kind."""
    if kind == "list":
        return server.request("GET", f"{LIST}{repo.query}")
    return server.request("POST", f"{LIST}/{kind}{repo.query}")


def _observe(repo: ServedRepo, kind: str, response: Any, oldest: int) -> ObservedResponse:  # noqa: ANN401 - JSON
    said = set[str]()
    if kind == "list":
        said = list_descriptions(response["data"]) or {"nothing"}
    elif kind != "refresh":
        said = list_prompt_texts(response["data"])
    return ObservedResponse(repo, kind, response["meta"].get("commit", ""), frozenset(said), oldest)


@contextmanager
def run_loaded_server(folder: Path) -> Iterator[tuple[RunningServer, list[ServedRepo]]]:
    """A server over three repositories: the first is configured, calls name the others."""
    root = folder / "served"
    repos = [git_repo(root / f"team/h{n}.git", make_commit_files(0)) for n in range(REPOSITORIES)]
    with run_git_server(root) as site:
        urls = [site.url(f"team/h{n}.git") for n in range(REPOSITORIES)]
        queries = ["", *(f"?repo={quote(url, safe='')}" for url in urls[1:])]
        stocks = [ServedRepo(repo, query) for repo, query in zip(repos, queries, strict=True)]
        with team_server(team_settings(folder, urls[0])) as server:
            yield server, stocks
