"""Plots as inline SVG: rates with intervals, and changes between two rates.

Positions are percentages, so that a plot fits every width without scripts. Colors come from the
style sheet of the page.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.evals.statistics import Interval

_MARGIN = 2.0  # percent on both sides, for the dots at the ends
_ROW_HEIGHT = 22


class PlotRow(NamedTuple):
    """One row: a label, and a value with its interval and text.

    The baseline is drawn hollow.
    """

    label: str
    value: float | None
    interval: Interval | None
    text: str
    baseline: float | None = None
    kind: str = "skill"  # "skill", "other" or "bad"; sets the color


class PlotScale(NamedTuple):
    """The range of the values, and the marks below the rows."""

    low: float
    high: float
    marks: Sequence[float]

    def place(self, value: float) -> str:
        """Return the position of a value in percent."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{_MARGIN + share * (100 - 2 * _MARGIN):.2f}%"


RATES = PlotScale(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))
DIFFERENCES = PlotScale(-1.0, 1.0, (-1.0, -0.5, 0.0, 0.5, 1.0))


def render_plot(title: str, rows: Iterable[PlotRow], scale: PlotScale = RATES) -> str:
    """Return the HTML of a plot."""
    parts = [f'<div class="plot" role="group" aria-label="{escape(title)}">']
    parts += (
        f'<div class="label">{escape(row.label)}</div>'
        f"{_render_row(row, scale)}"
        f'<div class="value">{escape(row.text)}</div>'
        for row in rows
    )
    parts.append(f"<div></div>{_render_axis(scale)}<div></div></div>")
    return "".join(parts)


def _render_row(row: PlotRow, scale: PlotScale) -> str:
    name = escape(f"{row.label}: {row.text}")
    lines = [
        f'<svg class="row" width="100%" height="{_ROW_HEIGHT}" role="img" aria-label="{name}">'
    ]
    middle = _ROW_HEIGHT // 2
    lines += [
        f'<line class="grid" x1="{place}" x2="{place}" y1="0" y2="{_ROW_HEIGHT}"/>'
        for place in map(scale.place, scale.marks)
    ]
    if row.interval is not None:
        low, high = map(scale.place, row.interval)
        lines.append(
            f'<line class="interval {row.kind}" '
            f'x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>'
        )
    if row.baseline is not None:
        place = scale.place(row.baseline)
        if row.value is not None:
            lines.append(
                f'<line class="change" x1="{place}" x2="{scale.place(row.value)}" '
                f'y1="{middle}" y2="{middle}"/>'
            )
        lines.append(f'<circle class="baseline" cx="{place}" cy="{middle}" r="4.5"/>')
    if row.value is not None:
        place = scale.place(row.value)
        lines.append(f'<circle class="dot {row.kind}" cx="{place}" cy="{middle}" r="5"/>')
    return "".join((*lines, "</svg>"))


def _render_axis(scale: PlotScale) -> str:
    marks = []
    for mark in scale.marks:
        anchor = "start" if mark == scale.low else "end" if mark == scale.high else "middle"
        place = {"start": "0%", "end": "100%"}.get(anchor, scale.place(mark))
        marks.append(f'<text x="{place}" y="12" text-anchor="{anchor}">{mark:g}</text>')
    return f'<svg class="axis" width="100%" height="16" aria-hidden="true">{"".join(marks)}</svg>'
