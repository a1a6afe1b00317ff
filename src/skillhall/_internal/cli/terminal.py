"""Text for a terminal: nothing in it moves the cursor, changes colours or turns its direction.

Names, descriptions and paths come from strangers. Whatever is not a visible character is shown as
an escape, on a terminal and in a pipe alike.
"""

from __future__ import annotations

import os
import re
import sys
from itertools import islice
from typing import TYPE_CHECKING

from skillhall._internal.skill.invisible import replace_invisible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TextIO

    from rich.console import Console

_BATCH_SIZE = 512  # lines written at once
_MAX_COLUMN_WIDTH = 40  # cells of a column that is not the description
_WHITESPACE = r"[ \t\r\n\f\v\x85\u2028\u2029]+"


def sanitize_line(text: str) -> str:
    """`text` on one line, with everything unseen made visible."""
    if text.isprintable():
        return text
    return _escape_invisible(re.sub(_WHITESPACE, " ", text).strip())


def sanitize_text(text: str) -> str:
    """The same for a text that may have lines and tabs."""
    return _escape_invisible(text.replace("\r\n", "\n"))


def _escape_invisible(text: str) -> str:
    return replace_invisible(text, _escape_character)


def _escape_character(character: str) -> str:
    number = ord(character)
    if number <= 0xFF:  # noqa: PLR2004 - two digits are enough
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004


def is_terminal(stream: TextIO) -> bool:
    """Whether a person reads along."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def is_interactive() -> bool:
    """Whether a person sits there who can be asked: not in a pipe, and not in CI."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr) and not os.environ.get("CI")


def is_smart_terminal(stream: TextIO) -> bool:
    """Whether tables and progress can be shown: on a terminal that moves its cursor."""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def has_color(stream: TextIO) -> bool:
    """Whether colours can be shown: also if the user has not set NO_COLOR."""
    return is_smart_terminal(stream) and not os.environ.get("NO_COLOR")


def print_message(text: str) -> None:
    """One line to stderr, for the person: stdout belongs to the data."""
    sys.stderr.write(f"{sanitize_line(text)}\n")


def print_rows(rows: Iterable[Iterable[object]]) -> None:
    """Tab-separated lines on stdout."""
    print_lines("\t".join([sanitize_line(str(cell)) for cell in row]) for row in rows)


def print_lines(lines: Iterable[str]) -> None:
    """Lines on stdout, many at a time: each write may be a system call."""
    left = iter(lines)
    while some := list(islice(left, _BATCH_SIZE)):
        sys.stdout.write("\n".join(some) + "\n")


def print_text(text: str) -> None:
    """A text on stdout: exact in a pipe, cleaned on a terminal."""
    sys.stdout.write(sanitize_text(text) if is_terminal(sys.stdout) else text)


def build_console(stream: TextIO) -> Console:
    """A rich console that takes text as it is: no markup, no highlighting, no emoji codes."""
    from rich.console import Console as RichConsole

    return RichConsole(file=stream, highlight=False, markup=False, emoji=False)


def print_table(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """A table on a terminal: the second column takes what the others leave."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    cells = [[sanitize_line(str(cell)) for cell in row] for row in rows]
    heading_style, name_style = ("bold", "cyan") if has_color(sys.stdout) else ("", "")
    table = Table(
        box=None, header_style=heading_style, pad_edge=False, padding=(0, 2, 0, 0), expand=True
    )
    for number, heading in enumerate(headings):
        longest = max(cell_len(row[number]) for row in [headings, *cells])
        is_wide = number == 1
        table.add_column(
            heading,
            style=name_style if number == 0 else None,
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if is_wide else None,
            width=None if is_wide else min(longest, _MAX_COLUMN_WIDTH),
        )
    for row in cells:
        table.add_row(*map(Text, row))
    build_console(sys.stdout).print(table)
