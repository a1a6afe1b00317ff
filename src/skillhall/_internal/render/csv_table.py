"""CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Spreadsheets take a cell that starts with one of these as a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def render_csv_table(rows: Iterable[Iterable[object]]) -> str:
    """Render rows as CSV. An apostrophe makes spreadsheets show formulas as text."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerows(map(_neutralize, row) for row in rows)
    return output.getvalue()


def _neutralize(cell: object) -> object:
    is_formula = isinstance(cell, str) and cell.startswith(_FORMULA_STARTS)
    return f"'{cell}" if is_formula else cell
