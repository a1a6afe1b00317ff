"""Pages with many skills or blocks compared with small ones, in process and in a browser."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message

from benchmarks import boards
from benchmarks.harness import DISCARDED_ROUNDS, BenchmarkError
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, Row
from benchmarks.trees import TreeSpec, ensure_tree
from skillhall._internal.asgi import Services, build_app
from skillhall._internal.prompt_server.service import PromptService
from skillhall._internal.prompt_server.source_settings import read_prompt_sources
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.workspace.workspace import LazyWorkspace

BAR = Bar(3.0)
FEW, MANY = 50, 5_000
REQUESTS = 10  # in one round


def run(plan: Plan) -> Iterator[Report]:
    """Yield the reports on the first page of the table and on a search."""
    few, many = (_Hall.open(plan.data, number) for number in (FEW, MANY))
    rows = (
        _row("first page", _Asked(few), _Asked(many), plan.rounds, BAR),
        _row("search", _Asked(few, query=b"q=pdf"), _Asked(many, query=b"q=pdf"), plan.rounds),
    )
    yield Report(f"web page: {MANY:,} skills against {FEW}", rows)
    with boards.open_workspace_of() as desk:
        hall = _Hall.open(plan.data, FEW, LazyWorkspace(lambda: desk))
        short, long = (
            _Asked(hall, f"/session/{boards.session_of(desk, size)}")
            for size in (boards.FEW, boards.MANY)
        )
        row = _row("board", short, long, plan.rounds, boards.PAGE_BAR)
    yield Report(f"board: {boards.MANY} blocks against {boards.FEW}", (row,))
    told = f"move in a browser: {boards.MANY} blocks against {boards.SHORT}"
    yield Report(told, (boards.move_row(plan.rounds),))
    yield Report("move in another browser, against one second", (boards.seen_row(plan.rounds),))


@dataclass
class _Hall:
    """A server with a number of skills."""

    app: ASGIApp

    @classmethod
    def open(cls, data: Path, number: int, workspace: LazyWorkspace | None = None) -> "_Hall":
        tree = ensure_tree(data, TreeSpec("flat", number)).root
        run_directory = data / f"web-{number}"
        (run_directory / ".agents").mkdir(parents=True, exist_ok=True)
        link = run_directory / ".agents" / "skills"
        if not link.is_symlink():
            link.symlink_to(tree, target_is_directory=True)
        settings = Settings(str(run_directory), str(data / "web-cache"))
        collection = Collection(FolderStore(run_directory), settings)
        services = Services(PromptService(read_prompt_sources(settings)), collection, workspace)
        collection.watch()  # its threads end with this process
        while collection.facts.progress or not collection.snapshot().ids:
            time.sleep(0.1)
        return cls(build_app(services, settings))


class _Asked(NamedTuple):
    hall: _Hall
    path: str = "/skills"
    query: bytes = b""


def _row(name: str, few: _Asked, many: _Asked, rounds: int, bar: Bar | None = None) -> Row:
    total = rounds + DISCARDED_ROUNDS
    kept = [(_cost(few), _cost(many)) for _ in range(total)][DISCARDED_ROUNDS:]
    return Row(
        name=name,
        wall=median(large[0] / small[0] for small, large in kept),
        cpu=median(large[1] / small[1] for small, large in kept),
        median_ms=median(large[0] for _, large in kept) / REQUESTS * 1e3,
        bar=bar,
    )


def _cost(asked: _Asked) -> tuple[float, float]:
    """Return wall-clock and CPU time of some requests, including background work."""
    costs = [asyncio.run(_timed(asked)) for _ in range(REQUESTS)]
    return sum(wall for wall, _ in costs), sum(cpu for _, cpu in costs)


async def _timed(asked: _Asked) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    await _ask(asked)
    return time.perf_counter() - wall, time.process_time() - cpu


async def _ask(asked: _Asked) -> None:
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
        "path": asked.path,
        "raw_path": asked.path.encode("ascii"),
        "query_string": asked.query,
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1:80")],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }
    await asked.hall.app(scope, receive, send)
    if sent[0]["status"] != 200:
        raise BenchmarkError(f"the page answers {sent[0]['status']}")
