"""`skillhall token`: manages the access tokens of the servers on one database."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.commands.session.lookup import to_missing_package_error
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option, print_group_help
from skillhall._internal.cli.terminal import print_message, print_rows, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.wiring.database import AccessTokens, Token


@click.group("token", invoke_without_command=True, epilog="Example: skillhall token new laptop")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Manage the access tokens besides SKILLHALL_AUTH_TOKEN. All commands accept --json."""
    print_group_help(ctx)


@command.command("new", epilog="Example: skillhall token new laptop")
@click.argument("label")
@json_option
def create(*, label: str, as_json: bool) -> int:
    """Create a token named LABEL and print it. It is shown only once."""
    with _open_tokens() as tokens:
        created = tokens.create(label)
    if as_json:
        print_json_report("token new", {**_serialize_token(created.stored), "token": created.text})
        return 0
    sys.stdout.write(f"{created.text}\n")
    print_message(
        sanitize_line(
            f"shown only once; to revoke it, run: skillhall token revoke {created.stored.id}"
        )
    )
    return 0


@command.command("list", epilog="Example: skillhall token list")
@json_option
def list_tokens(*, as_json: bool) -> int:
    """List the tokens by id, label and creation time."""
    with _open_tokens() as tokens:
        stored = tokens.list()
    if as_json:
        print_json_report("token list", {"tokens": [_serialize_token(token) for token in stored]})
        return 0
    print_rows((token.id, token.label, token.created) for token in stored)
    return 0


@command.command("revoke", epilog="Example: skillhall token revoke laptop")
@click.argument("token", metavar="ID|LABEL")
@json_option
def revoke(*, token: str, as_json: bool) -> int:
    """Revoke the token with this id or label."""
    with _open_tokens() as tokens:
        tokens.revoke(token)
    if as_json:
        print_json_report("token revoke", {"revoked": token})
    else:
        print_message(sanitize_line(f"revoked {token}"))
    return 0


@contextmanager
def _open_tokens() -> Iterator[AccessTokens]:
    """Open the tokens of the configured database. Raises: CommandFailed if a package is missing."""
    try:
        from skillhall._internal.wiring.database import open_access_tokens

        tokens, close = open_access_tokens(read_settings())
    except ModuleNotFoundError as error:
        raise to_missing_package_error(error) from None
    try:
        yield tokens
    finally:
        close()


def _serialize_token(token: Token) -> dict[str, object]:
    return {"id": token.id, "label": token.label, "created": token.created}
