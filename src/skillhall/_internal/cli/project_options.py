"""What the commands on installed skills share: which shelf, a sign of life, rows and JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.terminal import is_decorated, print_rows, print_table, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from skillhall._internal.cli.errors import Failure
    from skillhall._internal.installer.project import Shelf

_F = TypeVar("_F", bound="Callable[..., Any]")


def global_option(function: _F) -> _F:
    """`-g`: the skills of the person, not of the project."""
    return click.option(
        "-g",
        "--global",
        "is_user",
        is_flag=True,
        help="Your own skills, in your home folder, instead of the project's.",
    )(function)


def open_shelf(*, is_user: bool, follow_links: bool = False) -> Shelf:
    """The shelf that a command is about."""
    from skillhall._internal.installer.project import Shelf

    return Shelf.of(read_settings(follow_links=follow_links), user=is_user)


def print_shelf_rows(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for a person, plain lines for a pipe."""
    if is_decorated(sys.stdout):
        print_table(headings, rows)
    else:
        print_rows(rows)


def tell_failures(failures: Iterable[tuple[str, Failure]]) -> None:
    """One line for each skill, then each hint once."""
    hints: dict[str, None] = {}
    for key, failure in failures:
        is_named = failure.message.startswith(key)
        say(failure.message if is_named else f"{key}: {failure.message}")
        if failure.hint:
            hints[failure.hint] = None
    for hint in hints:
        say(f"hint: {hint}")
