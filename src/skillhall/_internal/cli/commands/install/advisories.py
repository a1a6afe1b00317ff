"""`skillhall advisories`: the revoked skills that this machine knows of."""

from __future__ import annotations

from pathlib import Path

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.installer.revocation_check import (
    RevocationCheck,
    find_revoked_installs,
    list_revocations,
    list_servers,
    refresh_revocations,
)
from skillhall._internal.policy.trust.revocations import MAX_LIST_SIZE
from skillhall.errors import SourceNotFound

_SHORT_DIGEST = len("sha256:") + 12


@json_command("advisories", "skillhall advisories revoked.json --server https://skills.acme.org")
@click.argument("file", required=False)
@click.option(
    "--server", default="", metavar="URL", help="Specify the server that FILE comes from."
)
@flag("--check", help="Fetch the lists of all servers now.")
def command(*, file: str | None, server: str, check: bool) -> CommandResult:
    """List the revoked skills that this machine knows of; agents cannot use them.

    With FILE, read a list that a server has published, for machines without a network. The list is
    at /.well-known/agent-skills/revoked.json on the server. A list that is older than the known one
    is rejected.
    """
    settings = read_settings()
    messages: list[str] = []
    if server and not file:
        raise click.UsageError("--server needs FILE")
    if file:
        stored = RevocationCheck(settings).read_file(_read(file), file, server.rstrip("/"))
        count = 0 if stored.revocations is None else len(stored.revocations.revoked)
        messages.append(f"read {format_count(count, 'revocation')}")
    warnings = refresh_revocations(settings) if check else []
    rows, lists = list_revocations(settings), list_servers(settings)
    installs = find_revoked_installs(settings)
    return CommandResult(
        {
            "revoked": rows,
            "lists": lists,
            "installed": [{"path": one.path, "digest": one.revocation.digest} for one in installs],
        },
        headings=["digest", "skill", "reason", "instead", "server"],
        rows=[
            (
                str(row["digest"])[:_SHORT_DIGEST],
                row["skill"] or "-",
                row["reason"] or "-",
                row["instead"] or "-",
                row["server"],
            )
            for row in rows
        ],
        messages=messages,
        warnings=[
            f"warning: {text}" for text in (*warnings, *(one.describe() for one in installs))
        ],
    )


def _read(file: str) -> bytes:
    try:
        with Path(file).open("rb") as opened:
            return opened.read(2 * MAX_LIST_SIZE + 1)
    except (FileNotFoundError, IsADirectoryError):
        raise SourceNotFound(file) from None
