"""The eval results on the page of a skill: rates with intervals, as rows of a plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.evals.reports.model_overview import DIFFERENCE
from skillhall._internal.evals.reports.svg_plots import RATES

if TYPE_CHECKING:
    from skillhall._internal.evals.reports.model_overview import ModelRow
    from skillhall._internal.evals.reports.result_overview import ResultOverview


class EvalRow(NamedTuple):
    """A rate, and the places of its value and its interval in percent."""

    name: str  # a key of the texts
    text: str
    place: str
    low: str
    high: str


class EvalCard(NamedTuple):
    """What the page shows about the latest results."""

    overview: ResultOverview
    rows: tuple[EvalRow, ...]
    difference: str  # its value and interval; "" without runs to compare with
    marks: tuple[str, ...]  # the places of the grid
    models: tuple[ModelRow, ...]  # the rows of the table


def build_eval_card(overview: ResultOverview | None) -> EvalCard | None:
    """Return the card; `None` without results."""
    if overview is None:
        return None
    rows = tuple(
        EvalRow(
            one.name,
            one.text,
            RATES.place(one.value),
            RATES.place(one.interval.low),
            RATES.place(one.interval.high),
        )
        for one in overview.rates
        if one.name != DIFFERENCE
    )
    difference = next((one.text for one in overview.rates if one.name == DIFFERENCE), "")
    models = tuple(row for one in overview.models for row in one.list_rows())
    return EvalCard(overview, rows, difference, tuple(map(RATES.place, RATES.marks)), models)
