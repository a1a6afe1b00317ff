"""The result of a command, printed as text or as JSON."""

import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import click

from skillhall._internal.cli.errors import CommandFailed, ErrorInfo
from skillhall._internal.cli.json_output import EncodedItems, print_json_report
from skillhall._internal.cli.terminal import (
    is_smart_terminal,
    is_terminal,
    print_lines,
    print_message,
    print_rows,
    print_table,
    print_text,
    sanitize_line,
    sanitize_text,
)
from skillhall._internal.policy.effects import JudgedFinding

JSON_META_KEY = f"{__name__}.json"  # whether the command prints JSON, in the context's `meta`


class FileContent(NamedTuple):
    """A file that a command prints."""

    path: str
    data: bytes

    def serialize(self) -> dict[str, object]:
        """Return the size and content of the file for JSON output."""
        try:
            encoded = {"encoding": "utf-8", "content": self.data.decode("utf-8")}
        except UnicodeDecodeError:
            encoded = {"encoding": "base64", "content": b64encode(self.data).decode("ascii")}
        return {"size": len(self.data), **encoded}

    def print(self) -> None:
        """Write the file to stdout: unchanged in a pipe, sanitized on a terminal.

        Raises: CommandFailed if stdout is a terminal and the file is not text.
        """
        if not is_terminal(sys.stdout):
            sys.stdout.flush()
            sys.stdout.buffer.write(self.data)
            sys.stdout.buffer.flush()
            return
        try:
            sys.stdout.write(sanitize_text(self.data.decode("utf-8")))
        except UnicodeDecodeError:
            raise CommandFailed(
                "not_text",
                f"{self.path!r} is not text",
                "redirect the output to a file: skillhall … > FILE",
            ) from None


class CommandResult(NamedTuple):
    """Output of a command, as text and as JSON.

    With --json, `data`, `findings` and `error` are printed; otherwise, the text fields.
    """

    data: Mapping[str, object]
    findings: Iterable[JudgedFinding] | EncodedItems = ()
    error: ErrorInfo | None = None
    exit_code: int = 0
    # Text output: one of the next four on stdout, then the messages on stderr.
    text: str = ""  # unchanged in a pipe
    file: FileContent | None = None
    lines: Iterable[str] = ()
    rows: Iterable[Sequence[object]] = ()  # tab-separated; a table on a terminal, with headings
    headings: Sequence[str] = ()
    messages: Iterable[str] = ()
    # On stderr, with --json too.
    warnings: Iterable[str] = ()


def print_result(result: CommandResult | int | None) -> int | None:
    """Print a `CommandResult` and return its exit code; return other values as is."""
    if not isinstance(result, CommandResult):
        return result
    if is_json():
        error = None if result.error is None else result.error.serialize()
        print_json_report(_get_command_name(), result.data, result.findings, error)
    else:
        if result.text:
            print_text(result.text)
        if result.file is not None:
            result.file.print()
        print_lines(map(sanitize_line, result.lines))
        if result.headings and is_smart_terminal(sys.stdout):
            print_table(result.headings, result.rows)
        elif result.rows:
            print_rows(result.rows)
        sys.stdout.flush()
        for message in result.messages:
            print_message(message)
    for warning in result.warnings:
        print_message(warning)
    return result.exit_code


def _get_command_name() -> str:
    """Return the name of the running command and its groups, such as "session list"."""
    names: list[str] = []
    context: click.Context | None = click.get_current_context()
    # `command_path` has the name that was typed, which may be an alias.
    while context is not None and context.parent is not None:
        names.insert(0, context.command.name or "")
        context = context.parent
    return " ".join(filter(None, names))


def is_json() -> bool:
    """Whether the running command prints JSON."""
    return bool(click.get_current_context().meta.get(JSON_META_KEY))


def format_errors(errors: Iterable[tuple[str, ErrorInfo]]) -> Iterator[str]:
    """Yield one line per error, then each distinct hint once."""
    hints: dict[str, None] = {}
    for key, info in errors:
        yield info.message if info.message.startswith(key) else f"{key}: {info.message}"
        if info.hint:
            hints[info.hint] = None
    yield from (f"hint: {hint}" for hint in hints)
