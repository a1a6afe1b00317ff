"""What the commands on installed skills share: which shelf, a sign of life, rows and JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.terminal import (
    is_smart_terminal,
    print_message,
    print_rows,
    print_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from skillhall._internal.cli.errors import ErrorInfo
    from skillhall._internal.installer.project import Project

_F = TypeVar("_F", bound="Callable[..., Any]")


def user_scope_option(function: _F) -> _F:
    """`-g`: the skills of the person, not of the project."""
    return click.option(
        "-g",
        "--global",
        "is_user",
        is_flag=True,
        help="Your own skills, in your home folder, instead of the project's.",
    )(function)


def open_project(*, is_user: bool, follow_links: bool = False) -> Project:
    """The shelf that a command is about."""
    from skillhall._internal.installer.project import Project

    return Project.from_settings(read_settings(follow_links=follow_links), user=is_user)


def print_table_or_rows(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for a person, plain lines for a pipe."""
    if is_smart_terminal(sys.stdout):
        print_table(headings, rows)
    else:
        print_rows(rows)


def print_errors(errors: Iterable[tuple[str, ErrorInfo]]) -> None:
    """One line for each skill, then each hint once."""
    hints: dict[str, None] = {}
    for key, failure in errors:
        is_named = failure.message.startswith(key)
        print_message(failure.message if is_named else f"{key}: {failure.message}")
        if failure.hint:
            hints[failure.hint] = None
    for hint in hints:
        print_message(f"hint: {hint}")
