"""Pages with many skills or blocks compared with small ones, in process and in a browser."""

import asyncio
import gzip
import re
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
from benchmarks.report import Bar, Judged, Report, Row
from benchmarks.texts import name_at
from benchmarks.trees import TreeSpec, ensure_tree
from skillhall._internal.asgi import Services, build_app
from skillhall._internal.prompt_server.service import PromptService
from skillhall._internal.prompt_server.source_settings import read_prompt_sources
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.workspace.workspace import LazyWorkspace

BAR = Bar(2.0)
WEIGHT_BAR = Bar(0.15, Judged.MOVED)
FEW, MANY = 50, 5_000
REQUESTS = 10  # in one round
_SKILL = name_at(0)
# Pages of servers with few and with many skills: name, path and query.
PAGES = (
    ("list", "/skills", b""),
    ("search", "/skills", b"q=pdf"),
    ("facet", "/skills", b"risk=L0&scripts=no&sort=tokens"),
    ("palette", "/palette", b"q=pdf"),
    ("editor", f"/skill/{_SKILL}/edit-file", b"path=SKILL.md"),
)
_ASSET = re.compile(rb'(?:src|href)="(/static/[^"]+)"')


def run(plan: Plan) -> Iterator[Report]:
    """Yield the reports on pages about skills and on boards."""
    few, many = (_Hall.open(plan.data, number) for number in (FEW, MANY))
    rows = tuple(
        _row(name, _Asked(few, path, query), _Asked(many, path, query), plan.rounds, BAR)
        for name, path, query in PAGES
    )
    # No skill has the word, so the search looks for similar ones. There is no bar.
    word = b"q=totals"
    unknown = _row(
        "palette, unknown word",
        _Asked(few, "/palette", word),
        _Asked(many, "/palette", word),
        plan.rounds,
    )
    rows = (*rows, unknown)
    yield Report(f"web pages: {MANY:,} skills against {FEW}", rows)
    weight = Row(name="first page", moved_mb=_measure_weight(many) / 1e6, bar=WEIGHT_BAR)
    yield Report("first visit: the list with its styles and scripts, as sent", (weight,))
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


def _measure_weight(hall: _Hall) -> int:
    """Return the bytes of the list and its files, as they are sent to a browser."""
    page = asyncio.run(_ask(_Asked(hall)))
    html = gzip.decompress(page) if page.startswith(b"\x1f\x8b") else page
    urls = {match.decode("ascii") for match in _ASSET.findall(html)}
    targets = (
        _Asked(hall, path, query.encode())
        for path, _, query in (url.partition("?") for url in urls)
    )
    return len(page) + sum(len(asyncio.run(_ask(asked))) for asked in targets)


def _cost(asked: _Asked) -> tuple[float, float]:
    """Return wall-clock and CPU time of some requests, including background work."""
    costs = [asyncio.run(_timed(asked)) for _ in range(REQUESTS)]
    return sum(wall for wall, _ in costs), sum(cpu for _, cpu in costs)


async def _timed(asked: _Asked) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    await _ask(asked)
    return time.perf_counter() - wall, time.process_time() - cpu


async def _ask(asked: _Asked) -> bytes:
    """Return the body of the response."""
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
        "headers": [(b"host", b"127.0.0.1:80"), (b"accept-encoding", b"gzip")],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }
    await asked.hall.app(scope, receive, send)
    if sent[0]["status"] != 200:
        raise BenchmarkError(f"{asked.path} answers {sent[0]['status']}")
    return b"".join(message.get("body", b"") for message in sent[1:])
