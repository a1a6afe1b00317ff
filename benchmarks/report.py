"""Results of benchmarks and their limits, as a table or as JSON."""

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

NOTHING = "–"
HEADER = (
    "name",
    "wall ratio",
    "cpu ratio",
    "bar",
    "verdict",
    "peak MB",
    "moved MB",
    "rate",
    "median ms",
)


class Judged(StrEnum):
    """The value of a row that its limit applies to."""

    RATIO = "ratio"  # the worse of wall and CPU
    WALL = "wall"  # the time a user waits
    CPU = "cpu"
    MEMORY = "memory"
    MOVED = "moved"  # over the network
    RATE = "rate"  # requests per second relative to the baseline; higher is better


@dataclass(frozen=True, slots=True)
class Bar:
    """The maximum of a value, or the minimum of a rate."""

    limit: float
    judged: Judged = Judged.RATIO

    def __str__(self) -> str:
        """Return the limit as the table shows it."""
        if self.judged is Judged.RATE:
            return f"≥ {self.limit:.2f}"
        is_size = self.judged in (Judged.MEMORY, Judged.MOVED)
        digits = 1 if round(self.limit, 1) == self.limit else 2
        return f"≤ {self.limit:g} MB" if is_size else f"≤ {self.limit:.{digits}f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a report. Values that do not apply are None."""

    name: str
    wall: float | None = None
    cpu: float | None = None
    peak_mb: float | None = None
    moved_mb: float | None = None
    rate: float | None = None
    median_ms: float | None = None
    bar: Bar | None = None

    @property
    def verdict(self) -> str:
        """`ok` or `MISSED`; empty without a limit."""
        figures = self._judged_figures()
        if self.bar is None or not figures:
            return ""
        if self.bar.judged is Judged.RATE:
            return "ok" if min(figures) >= self.bar.limit else "MISSED"
        return "ok" if max(figures) <= self.bar.limit else "MISSED"

    def _judged_figures(self) -> list[float]:
        by_bar = {
            Judged.RATIO: (self.wall, self.cpu),
            Judged.WALL: (self.wall,),
            Judged.CPU: (self.cpu,),
            Judged.MEMORY: (self.peak_mb,),
            Judged.MOVED: (self.moved_mb,),
            Judged.RATE: (self.rate,),
        }
        figures = by_bar[self.bar.judged] if self.bar else ()
        return [figure for figure in figures if figure is not None]


class Printable(Protocol):
    """A report of any kind, as text and as records."""

    @property
    def title(self) -> str:
        """The line above the table."""

    def render(self) -> str:
        """Return the report as aligned text."""

    def records(self) -> Sequence[Mapping[str, object]]:
        """Return the rows for a JSON document."""


@dataclass(frozen=True, slots=True)
class Report:
    """The rows of one group of contenders."""

    title: str
    rows: tuple[Row, ...]

    def render(self) -> str:
        """Return the report as aligned text."""
        return align_table(self.title, [HEADER, *(_cells(row) for row in self.rows)])

    def records(self) -> list[dict[str, str | float | None]]:
        """Return the rows for a JSON document."""
        return [_record(row) for row in self.rows]


def align_table(title: str, lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells as aligned text below a title."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join([title, *("  " + _aligned(line, widths) for line in lines)])


def render_json(reports: Iterable[Printable]) -> str:
    """Return reports as one JSON document, with the Python version and the system."""
    document = {
        "schema": "skillhall.benchmarks/1",
        "python": platform.python_version(),
        "system": platform.system(),
        "reports": [{"title": report.title, "rows": report.records()} for report in reports],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _record(row: Row) -> dict[str, str | float | None]:
    return {
        "name": row.name,
        "wall_ratio": _rounded(row.wall),
        "cpu_ratio": _rounded(row.cpu),
        "bar": row.bar.limit if row.bar else None,
        "judged": row.bar.judged.value if row.bar else None,
        "verdict": row.verdict or None,
        "peak_mb": _rounded(row.peak_mb),
        "moved_mb": _rounded(row.moved_mb),
        "rate": _rounded(row.rate),
        "median_ms": _rounded(row.median_ms),
    }


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 3)


def _cells(row: Row) -> tuple[str, ...]:
    bar = str(row.bar) if row.bar else NOTHING
    figures = (_shown(row.wall, 2), _shown(row.cpu, 2), bar, row.verdict or NOTHING)
    sizes = (_shown(row.peak_mb, 1), _shown(row.moved_mb, 2), _shown(row.rate, 2))
    return (row.name, *figures, *sizes, _shown(row.median_ms, 1))


def _shown(figure: float | None, digits: int) -> str:
    return NOTHING if figure is None else f"{figure:.{digits}f}"


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)])
