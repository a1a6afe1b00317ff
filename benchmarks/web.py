"""The table of skills with many of them against one with a page full, in one process."""

import asyncio
import time
from collections.abc import Iterator
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
    few, many = (_app(plan.data, number) for number in (FEW, MANY))
    rows = (
        _row("first page", few, many, b"", plan.rounds, BAR),
        _row("search", few, many, b"q=pdf", plan.rounds),
    )
    yield Report(f"web page: {MANY:,} skills against {FEW}", rows)


def _app(data: Path, number: int) -> ASGIApp:
    tree = ensure_tree(data, TreeSpec("flat", number)).root
    run_directory = data / f"web-{number}"
    (run_directory / ".agents").mkdir(parents=True, exist_ok=True)
    link = run_directory / ".agents" / "skills"
    if not link.is_symlink():
        link.symlink_to(tree, target_is_directory=True)
    settings = Settings(str(run_directory), str(data / "web-cache"))
    collection = Collection(LocalSkills(run_directory), settings)
    return build_app(Services(PromptCounter(read_supply(settings)), collection), settings)


def _row(  # noqa: PLR0913, PLR0917 - what a row compares
    name: str, few: ASGIApp, many: ASGIApp, query: bytes, rounds: int, bar: Bar | None = None
) -> Row:
    total = rounds + DISCARDED_ROUNDS
    pairs = [(_cost(few, query), _cost(many, query)) for _ in range(total)][DISCARDED_ROUNDS:]
    return Row(
        name=name,
        wall=median(large[0] / small[0] for small, large in pairs),
        cpu=median(large[1] / small[1] for small, large in pairs),
        median_ms=median(large[0] for _, large in pairs) / REQUESTS * 1e3,
        bar=bar,
    )


def _cost(app: ASGIApp, query: bytes) -> tuple[float, float]:
    async def ask_all() -> None:
        for _ in range(REQUESTS):
            await _ask(app, query)

    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(ask_all())
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
