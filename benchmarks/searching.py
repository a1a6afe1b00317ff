"""Search compared with its bare SQL statements, and index build with a cold scan."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median, quantiles
from typing import TypeAlias

from benchmarks.harness import DISCARDED_ROUNDS, BenchmarkError
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, Row
from benchmarks.trees import TreeSpec, ensure_tree
from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.search.fts import FtsEngine
from skillhall._internal.catalog.search.linear_scan import SearchRow as Texts
from skillhall._internal.catalog.search.search_index import SearchIndex
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import load_catalog

BAR = Bar(2.0)
NOWHERE = "zebra"  # in no generated text
# Typical queries: one word, several, names, prefixes, unknown words, other scripts.
QUERIES = (
    *("pdf", "python", "kubernetes", "résumé", "security audit", "python test", "excel chart"),
    *("docker compose postgres", "deploy kubernetes helm", "write changelog", "git release"),
    *("generate invoice pdf", "review react typescript", "api design", "translate email"),
    *("deploy-kub", "audit-css", "lint-yaml-rules", "vali", "kube", "terra aws", "optim sql"),
    *("summarize meeting notes for the team", "convert csv to json with errors", "Excel Guide"),
    *("migrate database schema without", NOWHERE, f"python {NOWHERE}", "分析", "测试数据"),
)
Statement: TypeAlias = tuple[str, tuple[str | int, ...]]
Cost: TypeAlias = tuple[float, float]  # seconds of wall clock, seconds of CPU


class _Recording(FtsEngine):
    """The full-text index, which also records its statements."""

    def __init__(self, rows: Iterable[Texts], hidden: Iterable[int]) -> None:
        super().__init__(rows, hidden)
        self.statements: list[Statement] = []

    def execute(self, sql: str, values: tuple[str | int, ...]) -> list[tuple[int, float]]:
        """Return the rows and record the statement."""
        self.statements.append((sql, values))
        return super().execute(sql, values)

    @property
    def database(self) -> sqlite3.Connection:
        """The connection that executes the statements."""
        return self._database


@dataclass(frozen=True, slots=True)
class _Round:
    """Costs of every query in one round, of one scan and of one build."""

    searches: list[Cost]
    bare: list[Cost]
    scan: Cost
    build: Cost


def run(plan: Plan) -> Iterator[Report]:
    """Yield the report on searching the flat tree."""
    root = str(ensure_tree(plan.data, TreeSpec("flat", plan.scale.flat)).root)
    catalog = _load(root)
    index = SearchIndex.build(catalog)
    asked = _statements(catalog)
    total = plan.rounds + DISCARDED_ROUNDS
    rounds = [_round(root, catalog, index, asked) for _ in range(total)][DISCARDED_ROUNDS:]
    rows = (
        _search_row("search, p50", rounds, median),
        _search_row("search, p95", rounds, _p95),
        _build_row(rounds),
    )
    title = f"searching {len(catalog):,} skills, {len(QUERIES)} queries, against bare statements"
    yield Report(title, rows)


def _load(root: str) -> Catalog:
    return load_catalog([root], settings=Settings(".", ".", use_head_cache=False))


def _statements(catalog: Catalog) -> tuple[sqlite3.Connection, list[list[Statement]]]:
    """Return a database with the same content and the statements of each query."""
    made: list[_Recording] = []

    def make(rows: Iterable[Texts], hidden: Iterable[int]) -> _Recording:
        made.append(_Recording(rows, hidden))
        return made[0]

    index = SearchIndex.build(catalog, make_engine=make)
    asked = []
    for text in QUERIES:
        made[0].statements.clear()
        if not index.search(text).total and text != NOWHERE:
            raise BenchmarkError(f"the query {text!r} finds nothing")
        asked.append(list(made[0].statements))
    return made[0].database, asked


def _round(
    root: str,
    catalog: Catalog,
    index: SearchIndex,
    bare: tuple[sqlite3.Connection, list[list[Statement]]],
) -> _Round:
    database, asked = bare
    searches, statements = [], []
    for text, some in zip(QUERIES, asked, strict=True):
        searches.append(_cost(partial(index.search, text)))
        statements.append(_cost(partial(_execute, database, some)))
    scan = _cost(partial(_load, root))
    return _Round(searches, statements, scan, _cost(partial(SearchIndex.build, catalog)))


def _execute(database: sqlite3.Connection, statements: Iterable[Statement]) -> None:
    for sql, values in statements:
        database.execute(sql, values).fetchall()


def _cost(work: Callable[[], object]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def _p95(figures: Iterable[float]) -> float:
    return quantiles(figures, n=20)[-1]


def _search_row(
    name: str, rounds: Sequence[_Round], figure: Callable[[Iterable[float]], float]
) -> Row:
    def ratio(one: _Round, clock: int) -> float:
        ours = figure(cost[clock] for cost in one.searches)
        return ours / figure(cost[clock] for cost in one.bare)

    return Row(
        name=name,
        wall=median(ratio(one, 0) for one in rounds),
        cpu=median(ratio(one, 1) for one in rounds),
        median_ms=median(figure(cost[0] for cost in one.searches) for one in rounds) * 1e3,
        bar=BAR,
    )


def _build_row(rounds: Sequence[_Round]) -> Row:
    return Row(
        name="index of names and descriptions",
        wall=median(one.build[0] / one.scan[0] for one in rounds),
        cpu=median(one.build[1] / one.scan[1] for one in rounds),
        median_ms=median(one.build[0] for one in rounds) * 1e3,
        bar=BAR,
    )
