"""`skillhall token`: manages the access tokens of the servers on one database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import require_database
from skillhall._internal.cli.options import command_group, json_command

if TYPE_CHECKING:  # from an optional extra
    from skillhall._internal.wiring.database import AccessTokens, Token

command = command_group(
    "token",
    "Manage access tokens other than SKILLHALL_AUTH_TOKEN. All commands accept --json.",
    epilog="Example: skillhall token new laptop",
)


@json_command("new", "skillhall token new laptop", group=command)
@click.argument("label")
def create(*, label: str) -> CommandResult:
    """Create a token named LABEL and print it. It is shown only once."""
    with _open_tokens() as tokens:
        created = tokens.create(label)
    revoke_command = f"skillhall token revoke {created.stored.id}"
    return CommandResult(
        {**_serialize_token(created.stored), "token": created.text},
        lines=[created.text],
        messages=[f"shown only once; to revoke it, run: {revoke_command}"],
    )


@json_command("list", "skillhall token list", group=command)
def list_tokens() -> CommandResult:
    """List the tokens by id, label and creation time."""
    with _open_tokens() as tokens:
        stored = tokens.list()
    return CommandResult(
        {"tokens": [_serialize_token(token) for token in stored]},
        rows=[(token.id, token.label, token.created) for token in stored],
    )


@json_command("revoke", "skillhall token revoke laptop", group=command)
@click.argument("token", metavar="ID|LABEL")
def revoke(*, token: str) -> CommandResult:
    """Revoke the token with this id or label."""
    with _open_tokens() as tokens:
        tokens.revoke(token)
    return CommandResult({"revoked": token}, messages=[f"revoked {token}"])


@contextmanager
def _open_tokens() -> Iterator[AccessTokens]:
    """Open the tokens of the configured database.

    Raises: CommandFailed if a package is missing.
    """
    with require_database():
        from skillhall._internal.wiring.database import open_access_tokens

        tokens, close = open_access_tokens(read_settings())
    try:
        yield tokens
    finally:
        close()


def _serialize_token(token: Token) -> dict[str, object]:
    return {"id": token.id, "label": token.label, "created": token.created}
