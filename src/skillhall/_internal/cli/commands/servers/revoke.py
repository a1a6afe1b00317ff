"""`skillhall revoke`: blocks a version of a skill on machines that ask the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import require_database
from skillhall._internal.cli.options import (
    DefaultCommandGroup,
    flag,
    json_command,
    run_directory_option,
)
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.policy.trust.revocations import RevocationEntry, is_digest
from skillhall._internal.wiring.command_actor import get_actor

if TYPE_CHECKING:  # from an optional extra
    from skillhall._internal.settings import Settings
    from skillhall._internal.wiring.database import Revocations

_SHORT_DIGEST = len("sha256:") + 12

command = DefaultCommandGroup(
    "revoke",
    help="Revoke a version of a skill, so that no agent may use it.\n\n"
    "The server stops serving these files, and publishes their digest. Machines that have a copy "
    "block it at their next check.",
    epilog='Example: skillhall revoke pdf-tools --reason "sends keys to a stranger"',
)


@command.set_default
@json_command("", "skillhall revoke pdf-tools --reason TEXT")
@click.argument("subject", metavar="ID|DIGEST")
@click.option("--reason", required=True, metavar="TEXT", help="State the reason, which is public.")
@click.option("--instead", default="", metavar="ID@N", help="Name the version to use instead.")
@flag("--undo", help="Undo the revocation.")
@run_directory_option
def revoke(*, subject: str, reason: str, instead: str, undo: bool, root: str) -> CommandResult:
    """Revoke the current files of the skill ID, or the files with this DIGEST."""
    settings = read_settings()._replace(working_directory=root)
    digests, skill = _find_digests(subject, settings)
    with _open_revocations(settings) as revocations:
        if undo:
            restored = [
                digest
                for digest in digests
                if revocations.restore(get_actor(), digest, skill=skill, reason=reason)
            ]
            verb = "restored" if restored else "not revoked:"
            return CommandResult(
                {"restored": restored}, lines=restored, messages=[f"{verb} {subject}"]
            )
        entries = revocations.revoke(
            get_actor(), digests, skill=skill, reason=reason, instead=instead
        )
    return CommandResult(
        {"revocations": [*map(serialize_entry, entries)]},
        lines=[entry.digest for entry in entries],
        messages=[f"revoked {subject}"],
    )


@json_command("list", "skillhall revoke list", group=command)
def list_revocations() -> CommandResult:
    """List all entries, including those that undo a revocation."""
    with _open_revocations(read_settings()) as revocations:
        entries = revocations.list()
    return CommandResult(
        {"revocations": [*map(serialize_entry, entries)]},
        headings=["number", "digest", "skill", "state", "reason", "by", "at"],
        rows=[
            (
                entry.number,
                entry.digest[:_SHORT_DIGEST],
                entry.skill or "-",
                "revoked" if entry.is_revoked else "restored",
                entry.reason,
                entry.by,
                entry.at,
            )
            for entry in entries
        ],
    )


def serialize_entry(entry: RevocationEntry) -> dict[str, object]:
    """Return an entry for JSON output."""
    values = entry._asdict()
    is_revoked = values.pop("is_revoked")
    return {**values, "revoked": is_revoked}


def _find_digests(subject: str, settings: Settings) -> tuple[tuple[str, ...], str]:
    """Return the digests and the id of a skill. Raises: SkillNotFound."""
    if is_digest(subject):
        return (subject,), ""
    with require_database():
        from skillhall._internal.wiring.database import open_database_services
        from skillhall._internal.wiring.server_skills import compute_stored_digests

    with closing(open_database_services(settings)) as services:
        return compute_stored_digests(subject, settings, services), subject


@contextmanager
def _open_revocations(settings: Settings) -> Iterator[Revocations]:
    """Open the revocations of the configured database.

    Raises: CommandFailed if a package is missing.
    """
    with require_database():
        from skillhall._internal.wiring.database import open_revocations

        revocations, close = open_revocations(settings)
    try:
        yield revocations
    finally:
        close()
