"""Recall and reciprocal ranks of a search, and their report."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from benchmarks.finding.evaluation_set import Query
from benchmarks.report import NOTHING, align_table

DEPTHS = (1, 3, 5, 10, 20, 50)
Search = Callable[[str], Sequence[str]]  # from a query to the names of the hits, best first


@dataclass(frozen=True, slots=True)
class Answer:
    """A query and the rank of the first right skill, counted from 1, or None."""

    query: Query
    rank: int | None


def ask(search: Search, queries: Iterable[Query]) -> list[Answer]:
    """Search for each query and return the ranks."""
    return [Answer(query, _rank(search(query.text), query.right)) for query in queries]


def recall(answers: Sequence[Answer], depth: int) -> float:
    """Return the share of queries whose right skill is among the first `depth` hits."""
    return fmean(answer.rank is not None and answer.rank <= depth for answer in answers)


def mean_reciprocal_rank(answers: Sequence[Answer]) -> float:
    """Return the mean of 1 / rank; a query without a right hit counts as 0."""
    return fmean(0.0 if answer.rank is None else 1 / answer.rank for answer in answers)


def _rank(names: Sequence[str], right: frozenset[str]) -> int | None:
    for rank, name in enumerate(names[: DEPTHS[-1]], 1):
        if name in right:
            return rank
    return None


@dataclass(frozen=True, slots=True)
class RecallRow:
    """The answers of one search to some queries, and the least recall at some depths."""

    name: str
    answers: Sequence[Answer]
    bars: Mapping[int, float] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """`ok` or `MISSED`; empty without bars."""
        if not self.bars:
            return ""
        is_met = all(recall(self.answers, depth) >= bar for depth, bar in self.bars.items())
        return "ok" if is_met else "MISSED"


@dataclass(frozen=True, slots=True)
class RecallReport:
    """Recall at several depths, one row per group of queries or per search."""

    title: str
    rows: tuple[RecallRow, ...]

    def render(self) -> str:
        """Return the report as aligned text."""
        header = ("name", "queries", *(f"@{depth}" for depth in DEPTHS), "MRR", "bar", "verdict")
        return align_table(self.title, [header, *(_cells(row) for row in self.rows if row.answers)])

    def records(self) -> list[dict[str, object]]:
        """Return the rows for a JSON document."""
        return [_record(row) for row in self.rows if row.answers]


def _cells(row: RecallRow) -> tuple[str, ...]:
    shares = (f"{recall(row.answers, depth):.3f}" for depth in DEPTHS)
    bars = " ".join(f"@{depth} {bar:.3g}" for depth, bar in row.bars.items())
    rank = f"{mean_reciprocal_rank(row.answers):.3f}"
    return (row.name, str(len(row.answers)), *shares, rank, bars or NOTHING, row.verdict or NOTHING)


def _record(row: RecallRow) -> dict[str, object]:
    return {
        "name": row.name.strip(),
        "queries": len(row.answers),
        "recall": {str(depth): round(recall(row.answers, depth), 3) for depth in DEPTHS},
        "mean_reciprocal_rank": round(mean_reciprocal_rank(row.answers), 3),
        "bars": {str(depth): bar for depth, bar in row.bars.items()},
        "verdict": row.verdict or None,
    }
