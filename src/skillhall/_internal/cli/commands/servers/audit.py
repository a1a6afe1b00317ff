"""`skillhall audit`: lists, exports and verifies the audit log of a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from skillhall._internal.cli.command_result import CommandResult, is_json
from skillhall._internal.cli.errors import require_database
from skillhall._internal.cli.options import Command, command_group, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count, print_text

if TYPE_CHECKING:  # from an optional extra
    from skillhall._internal.wiring.database import AuditLog

command = command_group(
    "audit",
    "Show who changed what on a server, and verify the record. All commands accept --json.",
    epilog="Example: skillhall audit list --since 7d",
)
_FILTERS = (
    ("--actor", "NAME", "Show only changes by this user, or user/token."),
    ("--action", "NAME", "Show only this action, such as skill.edit, or a group such as skill."),
    ("--subject", "ID", "Show only changes to this skill, token, session, …"),
    ("--outcome", "done|refused", "Show only changes with this outcome."),
    ("--via", "NAME", "Show only changes made through web, rest, mcp, cli, webhook or system."),
    ("--since", "TIME", "Show only rows since this date or time, or from the last 12h, 7d or 4w."),
    ("--until", "TIME", "Show only rows before this date or time."),
)


def _filter_options(function: Command) -> Command:
    """Add the options of `AuditFilter`, passed on as `filters`."""

    @wraps(function)
    def run(**parameters: object) -> CommandResult | int | None:
        names = [name.removeprefix("--") for name, *_ in _FILTERS]
        filters = {name: str(parameters.pop(name) or "") for name in names}
        return function(filters=filters, **parameters)

    wrapped: Command = run
    for name, metavar, text in reversed(_FILTERS):
        wrapped = click.option(name, metavar=metavar, help=text)(wrapped)
    return wrapped


@json_command("list", "skillhall audit list --action skill --since 7d", group=command)
@_filter_options
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    metavar="N",
    help="Show at most N rows.",
)
def list_rows(*, filters: dict[str, str], limit: int) -> CommandResult:
    """List the newest rows of the audit log."""
    with _open_log() as log:
        rows = log.newest(log.parse_filter(datetime.now(UTC), **filters), limit=limit)
    return CommandResult(
        {"rows": rows},
        headings=["row", "time", "actor", "via", "action", "subject", "outcome"],
        rows=[
            (
                *(row["id"], row["at"], _format_actor(row)),
                *(row[name] or "-" for name in ("via", "action", "subject", "outcome")),
            )
            for row in rows
        ],
        messages=[] if rows else ["no rows"],
    )


@json_command(
    "export",
    "skillhall audit export --since 2026-01-01 > audit.jsonl",
    formats=("jsonl", "csv"),
    group=command,
)
@_filter_options
def export(*, filters: dict[str, str], output_format: str) -> CommandResult | int:
    """Print all rows, the oldest first, each with its position and hash in the chain."""
    with _open_log() as log:
        pages = log.pages(log.parse_filter(datetime.now(UTC), **filters))
        if is_json():
            return CommandResult({"rows": [row for page in pages for row in page]})
        for page in log.format_pages(pages, output_format):
            print_text(page)
    return 0


@json_command("verify", "skillhall audit verify", group=command)
@click.option(
    "--head",
    default="",
    metavar="HASH",
    help="Check that the chain contains this hash from a server's log.",
)
def verify(*, head: str) -> CommandResult:
    """Verify the hash chain of the audit log.

    The exit code is 1 if a row was edited, deleted, inserted or moved. Servers log the newest hash
    every hour; with --head, a completely rewritten chain is detected, too.
    """
    with _open_log() as log:
        report = log.verify(head.strip().lower())
    newest = report.head
    data: dict[str, Any] = {
        "valid": not report.problem,
        "verified": report.verified,
        "pending": report.pending,
        "position": newest.position,
        "hash": newest.hash,
    }
    if report.problem:
        data |= {"row": report.broken_row, "problem": report.problem}
        where = "" if report.broken_row is None else f" at row {report.broken_row}"
        messages = [f"the audit log is broken{where}: {report.problem}"]
        return CommandResult(data, exit_code=1, messages=messages)
    messages = [f"{format_count(report.verified, 'row')} verified, {report.pending} not sealed yet"]
    return CommandResult(data, lines=[newest.hash] if newest.hash else [], messages=messages)


def _format_actor(row: dict[str, Any]) -> str:
    return f"{row['actor']}/{row['token']}" if row["token"] else row["actor"] or "-"


@contextmanager
def _open_log() -> Iterator[AuditLog]:
    """Open the audit log of the configured database.

    Raises: CommandFailed if a package is missing.
    """
    with require_database():
        from skillhall._internal.wiring.database import open_audit_log

        log, close = open_audit_log(read_settings())
    try:
        yield log
    finally:
        close()
