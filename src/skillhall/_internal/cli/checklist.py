"""A checklist on the terminal: arrows move, space marks, enter takes what is marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.terminal import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

_WIDEST = 100  # characters of a row


class Row(NamedTuple):
    """One thing to mark."""

    title: str
    note: str = ""  # why it cannot be marked, if it cannot


def choose_rows(
    question: str, rows: Sequence[Row], keys: Input | None = None, screen: Output | None = None
) -> list[int]:
    """The numbers of the rows that were marked, on the terminal if no other is given.

    Raises: click.Abort if none is.
    """
    import questionary

    choices = [
        questionary.Choice(clean(row.title)[:_WIDEST], value=at, disabled=clean(row.note) or None)
        for at, row in enumerate(rows)
    ]
    told = "(space marks, a marks all, enter takes)"
    asked = questionary.checkbox(
        question, choices=choices, instruction=told, input=keys, output=screen
    )
    marked = asked.unsafe_ask()
    if not marked:
        raise click.Abort
    return list(marked)
