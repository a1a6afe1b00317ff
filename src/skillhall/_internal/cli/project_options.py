"""Options and output shared by the commands on installed skills."""

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
    """Add `--global`: user scope instead of project scope."""
    return click.option(
        "-g",
        "--global",
        "is_user",
        is_flag=True,
        help="Use the skills in your home folder instead of the project's.",
    )(function)


def open_project(*, is_user: bool, follow_links: bool = False) -> Project:
    """Open the project, or the user scope."""
    from skillhall._internal.installer.project import Project

    return Project.from_settings(read_settings(follow_links=follow_links), user=is_user)


def print_table_or_rows(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on a terminal, tab-separated lines in a pipe."""
    if is_smart_terminal(sys.stdout):
        print_table(headings, rows)
    else:
        print_rows(rows)


def print_errors(errors: Iterable[tuple[str, ErrorInfo]]) -> None:
    """Print one line per skill, then each distinct hint once."""
    hints: dict[str, None] = {}
    for key, info in errors:
        is_named = info.message.startswith(key)
        print_message(info.message if is_named else f"{key}: {info.message}")
        if info.hint:
            hints[info.hint] = None
    for hint in hints:
        print_message(f"hint: {hint}")
