"""A checklist on the terminal: arrows move, space marks, enter takes what is marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.terminal import sanitize_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

_MAX_ROW_WIDTH = 100  # characters of a row


class ChecklistRow(NamedTuple):
    """One thing to mark."""

    title: str
    disabled_reason: str = ""  # why it cannot be marked, if it cannot


def select_rows(
    question: str,
    rows: Sequence[ChecklistRow],
    key_input: Input | None = None,
    screen_output: Output | None = None,
) -> list[int]:
    """The numbers of the rows that were marked, on the terminal if no other is given.

    Raises: click.Abort if none is.
    """
    import questionary

    choices = [
        questionary.Choice(
            sanitize_line(row.title)[:_MAX_ROW_WIDTH],
            value=at,
            disabled=sanitize_line(row.disabled_reason) or None,
        )
        for at, row in enumerate(rows)
    ]
    told = "(space marks, a marks all, enter takes)"
    asked = questionary.checkbox(
        question, choices=choices, instruction=told, input=key_input, output=screen_output
    )
    marked = asked.unsafe_ask()
    if not marked:
        raise click.Abort
    return list(marked)
