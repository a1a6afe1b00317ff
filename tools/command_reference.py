"""The reference of commands, generated from the command line itself."""

import inspect
import re
from collections.abc import Iterator

import click

from skillhall._internal.cli.app import ALIASES, COMMAND_SECTIONS, cli
from skillhall._internal.cli.options import DefaultCommandGroup

HEAD = """\
# Commands

Every command of `skillhall`, with its options. `-h` or `--help` prints the same, and `--json`
prints the result as one JSON object. Data goes to stdout, messages to stderr. See
[errors](errors.md#exit-codes-and-statuses) for the exit codes.

This page is generated from the code.
"""


def build_command_reference() -> str:
    """Return the reference as a Markdown page."""
    lines = [HEAD]
    context = cli.make_context("skillhall", [], resilient_parsing=True)
    for title, commands in COMMAND_SECTIONS.items():
        lines += [f"## {title}", ""]
        for name in commands:
            if (command := cli.get_command(context, name)) is not None:
                lines += _describe(command, context, name, 3)
    return "\n".join(lines).rstrip() + "\n"


def _describe(
    command: click.Command, parent: click.Context, name: str, level: int
) -> Iterator[str]:
    context = click.Context(command, parent, info_name=name)
    path = context.command_path
    yield from (f"{'#' * level} {path}", "")
    yield from ("```text", f"{path} {' '.join(command.collect_usage_pieces(context))}", "```", "")
    yield from (_format_text(command.help or ""), "")
    aliases = sorted(alias for alias, target in ALIASES.items() if target == name and level == 3)  # noqa: PLR2004
    if aliases:
        yield from (f"Aliases: {', '.join(f'`{alias}`' for alias in aliases)}.", "")
    yield from _list_options(command, context)
    if command.epilog:
        yield from ("```text", _unwrap(command.epilog).removeprefix("Example: "), "```", "")
    if isinstance(command, click.Group):
        if isinstance(command, DefaultCommandGroup):
            yield from _list_options(command.default, context)
        for subcommand in command.list_commands(context):
            found = command.get_command(context, subcommand)
            if found is not None and not found.hidden:
                yield from _describe(found, context, subcommand, level + 1)


def _list_options(command: click.Command, context: click.Context) -> Iterator[str]:
    records = [
        record
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        if (record := parameter.get_help_record(context))
    ]
    if records:
        yield from ("| Option | |", "|---|---|")
        for names, text in records:
            yield f"| `{_escape(names)}` | {_escape(_unwrap(text))} |"
        yield ""


def _format_text(text: str) -> str:
    """Return a help text as Markdown; paragraphs after a backspace keep their lines."""
    parts = []
    for part in inspect.cleandoc(text).split("\n\n"):
        kept = part.startswith("\b\n")
        parts.append(f"```text\n{part[2:]}\n```" if kept else _escape_markup(_unwrap(part)))
    return "\n\n".join(parts)


def _escape_markup(text: str) -> str:
    return re.sub(r"([*_<])", r"\\\1", text)


def _unwrap(text: str) -> str:
    return " ".join(text.replace("\b", "").split())


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
