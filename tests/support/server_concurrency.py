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

from tests.support.git_server import GitRepo, git_repo, git_site
from tests.support.servers import Reply, Running
from tests.support.team_server import (
    LIST,
    numbered,
    said_by_list,
    said_by_prompt,
    team_server,
    team_settings,
)

CLIENTS = 16
REPOSITORIES = 3
OK = 200
# What a client does in turn: mostly what clients do most.
KINDS = ("list", "hello", "pdf", "list", "pdf", "hello", "list", "pdf", "hello", "refresh")


class Stock:
    """One repository, the query that asks for it, and the number of each of its commits."""

    def __init__(self, repo: GitRepo, query: str) -> None:
        self.repo = repo
        self.query = query
        self.label = "override " if query else ""
        self.numbers = {repo.git("rev-parse", "main"): 0}
        self._gate = threading.Lock()

    def push(self) -> int:
        """The number of a new commit; every other one has a history of its own."""
        with self._gate:
            number = len(self.numbers)
            parent = list(self.numbers)[-1] if number % 2 else ""
            self.numbers[self.repo.commit(numbered(number), parent=parent)] = number
            return number


@dataclass
class Tally:
    """What the clients saw."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)  # by kind and status
    unexpected: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    pushes: int = 0

    @property
    def passed(self) -> bool:
        """Whether there were answers, and nothing was wrong with any."""
        return bool(self.answers) and not self.unexpected and not self.torn


@dataclass(frozen=True)
class Seen:
    """What one good answer said: its commit, everything it showed, and the oldest it may be."""

    stock: Stock
    kind: str
    commit: str
    said: frozenset[str]
    oldest: int

    def problem(self) -> str:
        """How it contradicts itself or what was pushed, if it does."""
        number = self.stock.numbers.get(self.commit, -1)
        if number < self.oldest:
            return f"{self.kind}: {number} is older than {self.oldest}"
        if self.said - {f"commit {number}"}:
            return f"{self.kind}: {sorted(self.said)} in commit {number}"
        return ""


def hammer(server: Running, stocks: list[Stock], goes_on: Callable[[int], bool]) -> Tally:
    """What clients see who each ask while `goes_on`, told how often they have asked."""
    tally, gate, seen = Tally(), threading.Lock(), set[Seen]()

    def client(seat: int) -> None:
        choices, turn = random.Random(seat), 0  # noqa: S311 - no secret
        while goes_on(turn):
            kind = KINDS[(seat + turn) % len(KINDS)]
            stock = choices.choice(stocks)
            oldest = stock.push() if kind == "refresh" else 0
            reply = ask(server, kind, stock)
            with gate:
                tally.answers[f"{stock.label}{kind}", reply.status] += 1
                if reply.status != OK or "stale" in reply.json["meta"]:
                    tally.unexpected.append(f"{kind}: {reply.status} {reply.body[:300]!r}")
                else:
                    seen.add(_seen(stock, kind, reply.json, oldest))
            turn += 1

    with ThreadPoolExecutor(CLIENTS) as pool:
        for one in [pool.submit(client, seat) for seat in range(CLIENTS)]:
            one.result()
    # Only now is the number of every commit known for certain.
    tally.torn = [problem for problem in (one.problem() for one in seen) if problem]
    tally.pushes = sum(len(stock.numbers) - 1 for stock in stocks)
    return tally


def ask(server: Running, kind: str, stock: Stock) -> Reply:
    """One request of a kind."""
    if kind == "list":
        return server.ask("GET", f"{LIST}{stock.query}")
    return server.ask("POST", f"{LIST}/{kind}{stock.query}")


def _seen(stock: Stock, kind: str, answer: Any, oldest: int) -> Seen:  # noqa: ANN401 - JSON
    said = set[str]()
    if kind == "list":
        said = said_by_list(answer["data"]) or {"nothing"}
    elif kind != "refresh":
        said = said_by_prompt(answer["data"])
    return Seen(stock, kind, answer["meta"].get("commit", ""), frozenset(said), oldest)


@contextmanager
def hammered(folder: Path) -> Iterator[tuple[Running, list[Stock]]]:
    """A server over three repositories: the first is configured, calls name the others."""
    root = folder / "served"
    repos = [git_repo(root / f"team/h{n}.git", numbered(0)) for n in range(REPOSITORIES)]
    with git_site(root) as site:
        urls = [site.url(f"team/h{n}.git") for n in range(REPOSITORIES)]
        queries = ["", *(f"?repo={quote(url, safe='')}" for url in urls[1:])]
        stocks = [Stock(repo, query) for repo, query in zip(repos, queries, strict=True)]
        with team_server(team_settings(folder, urls[0])) as server:
            yield server, stocks
