"""The table of skills with many of them against one with a page full, in one process."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from starlette.types import ASGIApp, Message

from benchmarks.harness import DISCARDED_ROUNDS, BenchmarkError
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, Row
from benchmarks.trees import TreeSpec, ensure_tree
from skillhall.library.collection import Collection
from skillhall.library.local_skills import LocalSkills
from skillhall.prompts.configured import read_supply
from skillhall.prompts.counter import PromptCounter
from skillhall.settings import Settings
from skillhall.surfaces.server import Services, build_app

BAR = Bar(3.0)
FEW, MANY = 50, 5_000
REQUESTS = 10  # in one round


def run(plan: Plan) -> Iterator[Report]:
    """The report on the first page of the table, and on a search in it."""
    few, many = (_Hall.open(plan.data, number) for number in (FEW, MANY))
    rows = (
        _row("first page", few, many, plan.rounds, BAR),
        _row("after a pause", few, many, plan.rounds, BAR, pause=60.0),
        _row("search", few, many, plan.rounds, query=b"q=pdf"),
    )
    yield Report(f"web page: {MANY:,} skills against {FEW}", rows)


@dataclass
class _Hall:
    """A server with so many skills, and the time there."""

    app: ASGIApp
    collection: Collection
    now: float = 0.0

    @classmethod
    def open(cls, data: Path, number: int) -> "_Hall":
        tree = ensure_tree(data, TreeSpec("flat", number)).root
        run_directory = data / f"web-{number}"
        (run_directory / ".agents").mkdir(parents=True, exist_ok=True)
        link = run_directory / ".agents" / "skills"
        if not link.is_symlink():
            link.symlink_to(tree, target_is_directory=True)
        settings = Settings(str(run_directory), str(data / "web-cache"))
        collection = Collection(LocalSkills(run_directory), settings)
        services = Services(PromptCounter(read_supply(settings)), collection)
        hall = cls(build_app(services, settings), collection)
        collection.clock = lambda: hall.now
        return hall

    def wait(self, seconds: float) -> None:
        """Let time pass in which nobody asks, and nothing is under way."""
        self.collection.looks.wait()
        self.now += seconds


def _row(  # noqa: PLR0913 - what a row compares
    name: str,
    few: _Hall,
    many: _Hall,
    rounds: int,
    bar: Bar | None = None,
    *,
    query: bytes = b"",
    pause: float = 0.0,
) -> Row:
    total = rounds + DISCARDED_ROUNDS
    pairs = [(_cost(few, query, pause), _cost(many, query, pause)) for _ in range(total)]
    kept = pairs[DISCARDED_ROUNDS:]
    return Row(
        name=name,
        wall=median(large[0] / small[0] for small, large in kept),
        cpu=median(large[1] / small[1] for small, large in kept),
        median_ms=median(large[0] for _, large in kept) / REQUESTS * 1e3,
        bar=bar,
    )


def _cost(hall: _Hall, query: bytes, pause: float) -> tuple[float, float]:
    """The wall and CPU time of some requests; what goes on beside them slows them or does not."""
    costs = [asyncio.run(_timed(hall, query, pause)) for _ in range(REQUESTS)]
    return sum(wall for wall, _ in costs), sum(cpu for _, cpu in costs)


async def _timed(hall: _Hall, query: bytes, pause: float) -> tuple[float, float]:
    hall.wait(pause)
    wall, cpu = time.perf_counter(), time.process_time()
    await _ask(hall.app, query)
    return time.perf_counter() - wall, time.process_time() - cpu


async def _ask(app: ASGIApp, query: bytes) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/skills",
        "raw_path": b"/skills",
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1:80")],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)
    if sent[0]["status"] != 200:
        raise BenchmarkError(f"the page answers {sent[0]['status']}")
