"""A checklist on the terminal."""

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
    """A row of a checklist."""

    title: str
    disabled_reason: str = ""  # why the row cannot be selected


def select_rows(
    question: str,
    rows: Sequence[ChecklistRow],
    key_input: Input | None = None,
    screen_output: Output | None = None,
) -> list[int]:
    """Ask for a selection and return the row numbers. Raises: click.Abort if it is empty."""
    import questionary

    choices = [
        questionary.Choice(
            sanitize_line(row.title)[:_MAX_ROW_WIDTH],
            value=number,
            disabled=sanitize_line(row.disabled_reason) or None,
        )
        for number, row in enumerate(rows)
    ]
    instruction = "(space selects, a selects all, enter confirms)"
    prompt = questionary.checkbox(
        question, choices=choices, instruction=instruction, input=key_input, output=screen_output
    )
    selected = prompt.unsafe_ask()
    if not selected:
        raise click.Abort
    return list(selected)
