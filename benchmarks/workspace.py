"""Large sessions compared with small ones: edits, moves and additions of blocks."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.harness import DISCARDED_ROUNDS
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, Row
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.ordering import BlockPlacement
from skillhall._internal.workspace.validation import build_content
from skillhall._internal.workspace.workspace import Workspace
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP, make_postgres_database
from tests.support.postgres import shared_server
from tests.support.workspaces import make_workspace

SMALL, LARGE = 100, 10_000  # blocks
CHANGES = 40  # of each kind in a round
BAR = Bar(2.0)
TEXT = "A sentence of the length that notes have, more or less. " * 8
KINDS = ("edit", "move", "add and delete")


def run(plan: Plan) -> Iterator[Report]:
    """Yield one report per database."""
    with TemporaryDirectory() as folder:
        yield from _report("SQLite", f"sqlite:///{folder}/bench.db", plan)
    with _postgres() as url:
        yield from _report("PostgreSQL", url, plan)


@contextmanager
def _postgres() -> Iterator[str]:
    with TemporaryDirectory() as folder, shared_server(Path(folder)) as server:
        yield make_postgres_database(server, "bench")


def _report(name: str, url: str, plan: Plan) -> Iterator[Report]:
    database = Database(url, TIMESTAMP)
    desk = make_workspace(SqlWorkspaceStore(database, actor=ACTOR), "b")
    sessions = {size: _session(desk, size) for size in (SMALL, LARGE)}
    total = plan.rounds + DISCARDED_ROUNDS
    rounds = [_round(desk, sessions) for _ in range(total)][DISCARDED_ROUNDS:]
    database.close()
    rows = tuple(
        Row(
            name=f"{kind}, {LARGE:,} blocks",
            wall=median(one[kind, LARGE][0] / one[kind, SMALL][0] for one in rounds),
            cpu=median(one[kind, LARGE][1] / one[kind, SMALL][1] for one in rounds),
            median_ms=median(one[kind, LARGE][0] for one in rounds) / CHANGES * 1e3,
            bar=BAR,
        )
        for kind in KINDS
    )
    yield Report(f"a session of {LARGE:,} blocks against one of {SMALL}, on {name}", rows)


def _session(desk: Workspace, size: int) -> str:
    zones = [*Zone]
    contents = [build_content("note", zones[n % 3], f"{n} {TEXT}") for n in range(size)]
    return desk.sessions.create(f"{size} blocks", contents=contents).id


def _round(desk: Workspace, sessions: dict[int, str]) -> dict[tuple[str, int], tuple[float, float]]:
    found = {}
    for size, session in sessions.items():
        blocks = {block.id: block.version for block in desk.blocks.list(session)}
        ids = sorted(blocks)[:: max(1, len(blocks) // CHANGES)][:CHANGES]
        for kind, work in zip(KINDS, (_edit, _move, _add), strict=True):
            found[kind, size] = _cost(partial(work, desk, session, ids, blocks))
    return found


def _edit(desk: Workspace, session: str, ids: list[str], versions: dict[str, int]) -> None:
    for identity in ids:
        made = desk.blocks.edit(session, identity, versions[identity], text=TEXT)
        versions[identity] = made.version


def _move(desk: Workspace, session: str, ids: list[str], versions: dict[str, int]) -> None:
    for identity in ids:
        zone, place = Zone.STABLE, BlockPlacement(first=True)
        made = desk.blocks.move(session, identity, versions[identity], zone, place)
        versions[identity] = made.version


def _add(desk: Workspace, session: str, ids: list[str], _: dict[str, int]) -> None:
    for _number in ids:
        made = desk.blocks.add(session, "note", TEXT)
        desk.blocks.delete(session, made.id, made.version)


def _cost(work: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu
