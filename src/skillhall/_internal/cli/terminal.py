"""Terminal output, sanitized.

Names, descriptions and paths are untrusted. Control, invisible and direction-changing characters
are printed as escapes, on a terminal and in a pipe alike.
"""

from __future__ import annotations

import os
import re
import sys
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.skill.invisible_characters import replace_invisible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TextIO

    from rich.console import Console

    from skillhall._internal.policy.effects import JudgedFinding

# Lines or items per write: each write may be a system call, and 60,000 skills should not form one
# large string.
_BATCH_SIZE = 512
_T = TypeVar("_T")
_MAX_COLUMN_WIDTH = 40  # terminal cells; the description column has no limit
_WHITESPACE = r"[ \t\r\n\f\v\x85\u2028\u2029]+"


def sanitize_line(text: str) -> str:
    """Return `text` on one line, with invisible characters escaped."""
    if text.isprintable():
        return text
    return replace_invisible(re.sub(_WHITESPACE, " ", text).strip(), _escape_character)


def sanitize_text(text: str) -> str:
    """Return `text` with invisible characters escaped; newlines and tabs stay."""
    return replace_invisible(text.replace("\r\n", "\n"), _escape_character)


def _escape_character(character: str) -> str:
    number = ord(character)
    if number <= 0xFF:  # noqa: PLR2004 - two digits are enough
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def is_interactive() -> bool:
    """Whether the user can be asked; false without a terminal and in CI."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr) and not os.environ.get("CI")


def is_smart_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can show tables and progress."""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def has_color(stream: TextIO) -> bool:
    """Whether colors can be shown; respects NO_COLOR."""
    return is_smart_terminal(stream) and not os.environ.get("NO_COLOR")


def print_message(text: str) -> None:
    """Print one line to stderr. stdout is reserved for data."""
    sys.stderr.write(f"{sanitize_line(text)}\n")


def format_count(number: int, noun: str) -> str:
    """Return the number with its noun: "1 skill", "2 skills"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_findings(findings: Iterable[JudgedFinding]) -> Iterator[str]:
    """Yield one line per finding, in the format of compilers."""
    for finding, effect in findings:
        where = f"{finding.path}:{finding.line or 1}"
        yield f"{where}: {effect}[{finding.code}]: {finding.message}"


def print_rows(rows: Iterable[Iterable[object]]) -> None:
    """Print tab-separated lines to stdout."""
    print_lines("\t".join([sanitize_line(str(cell)) for cell in row]) for row in rows)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines to stdout, in batches."""
    for batch in iter_batches(lines):
        sys.stdout.write("\n".join(batch) + "\n")


def iter_batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    """Yield the items in lists of limited length."""
    rest = iter(items)
    while batch := list(islice(rest, _BATCH_SIZE)):
        yield batch


def print_text(text: str) -> None:
    """Print text to stdout: unchanged in a pipe, sanitized on a terminal."""
    sys.stdout.write(sanitize_text(text) if is_terminal(sys.stdout) else text)


def build_console(stream: TextIO) -> Console:
    """Return a rich console without markup, highlighting or emoji codes."""
    from rich.console import Console as RichConsole

    return RichConsole(file=stream, highlight=False, markup=False, emoji=False)


def print_table(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table. The second column gets the remaining width."""
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
