"""`skillhall token`: what lets clients into the servers on one database."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option, print_group_help
from skillhall._internal.cli.terminal import print_message, print_rows, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.wiring.database import AccessTokens, Token


@click.group("token", invoke_without_command=True, epilog="Example: skillhall token new laptop")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Keep the tokens that servers accept beside SKILLHALL_AUTH_TOKEN. All take --json."""
    print_group_help(ctx)


@command.command("new", epilog="Example: skillhall token new laptop")
@click.argument("label")
@json_option
def create(*, label: str, as_json: bool) -> int:
    """Make a token called LABEL and print it: nobody can read it again."""
    with _open_tokens() as tokens:
        made = tokens.create(label)
    if as_json:
        print_json_report("token new", {**_serialize_token(made.stored), "token": made.text})
        return 0
    sys.stdout.write(f"{made.text}\n")
    print_message(
        sanitize_line(
            f"this is shown once; 'skillhall token revoke {made.stored.id}' takes it back"
        )
    )
    return 0


@command.command("list", epilog="Example: skillhall token list")
@json_option
def list_tokens(*, as_json: bool) -> int:
    """List the tokens by id, label and age; never the tokens themselves."""
    with _open_tokens() as tokens:
        found = tokens.list()
    if as_json:
        print_json_report("token list", {"tokens": [_serialize_token(one) for one in found]})
        return 0
    print_rows((one.id, one.label, one.created) for one in found)
    return 0


@command.command("revoke", epilog="Example: skillhall token revoke laptop")
@click.argument("token", metavar="ID|LABEL")
@json_option
def revoke(*, token: str, as_json: bool) -> int:
    """Let nobody in any more by the token with that id or label."""
    with _open_tokens() as tokens:
        tokens.revoke(token)
    if as_json:
        print_json_report("token revoke", {"revoked": token})
    else:
        print_message(sanitize_line(f"revoked {token}"))
    return 0


@contextmanager
def _open_tokens() -> Iterator[AccessTokens]:
    """The tokens of the configured database. Raises: CommandFailed without the packages for it."""
    try:
        from skillhall._internal.wiring.database import open_access_tokens

        tokens, close = open_access_tokens(read_settings())
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sqlalchemy":
            raise
        hint = "pip install 'skillhall[server]'"
        raise CommandFailed("usage", "the database is not installed", hint) from None
    try:
        yield tokens
    finally:
        close()


def _serialize_token(token: Token) -> dict[str, object]:
    return {"id": token.id, "label": token.label, "created": token.created}
