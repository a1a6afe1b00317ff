"""`skillhall token`: manages the access tokens of the servers on one database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import require_database
from skillhall._internal.cli.options import command_group, flag, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.policy.access.access_scopes import DEFAULT_SCOPES, OPERATOR, AccessScope
from skillhall._internal.wiring.command_actor import get_actor

if TYPE_CHECKING:  # from an optional extra
    from skillhall._internal.wiring.database import AccessTokens, Token

command = command_group(
    "token",
    "Manage access tokens other than SKILLHALL_AUTH_TOKEN. All commands accept --json.",
    epilog="Example: skillhall token new laptop",
)


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class LifetimeParam(click.ParamType[timedelta]):
    """Duration such as 90d."""

    name = "lifetime"

    def convert(
        self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Parse a number and a unit."""
        if isinstance(value, timedelta):
            return value
        match = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", value)
        if match is None:
            self.fail(f"{value!r} is not a duration; use 30m, 12h, 90d or 52w", param, ctx)
        return timedelta(**{_UNITS[match[2]]: int(match[1])})


@json_command("new", "skillhall token new ci --scope read --expires 90d", group=command)
@click.argument("label")
@click.option(
    "--owner",
    default=OPERATOR,
    show_default=True,
    metavar="NAME",
    help="Record who the token belongs to.",
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([*map(str, AccessScope)]),
    help=f"Grant only this scope. Repeatable.  [default: {', '.join(DEFAULT_SCOPES)}]",
)
@click.option(
    "--expires",
    "lifetime",
    metavar="DURATION",
    type=LifetimeParam(),
    help="Let the token expire after this time, such as 12h, 90d or 52w.  [default: never]",
)
def create(
    *, label: str, owner: str, scopes: tuple[str, ...], lifetime: timedelta | None
) -> CommandResult:
    """Create a token named LABEL and print it. It is shown only once."""
    with _open_tokens() as tokens:
        created = tokens.create(
            label,
            owner,
            [AccessScope(scope) for scope in scopes] or DEFAULT_SCOPES,
            lifetime,
            actor=get_actor(),
        )
        data = _serialize_token(created.stored, tokens)
    revoke_command = f"skillhall token revoke {created.stored.id}"
    return CommandResult(
        {**data, "token": created.text},
        lines=[created.text],
        messages=[f"shown only once; to revoke it, run: {revoke_command}"],
    )


@json_command("list", "skillhall token list", group=command)
@flag("--all", "with_revoked", help="Include revoked tokens.")
def list_tokens(*, with_revoked: bool) -> CommandResult:
    """List the tokens with their owners, scopes, expiry, last use and state."""
    with _open_tokens() as tokens:
        data = [_serialize_token(token, tokens) for token in tokens.list(with_revoked=with_revoked)]
    return CommandResult(
        {"tokens": data},
        headings=["id", "label", "created", "owner", "scopes", "expires", "last use", "state"],
        rows=[[*map(_format_cell, row.values())] for row in data],
    )


@json_command("revoke", "skillhall token revoke laptop", group=command)
@click.argument("token", metavar="ID|LABEL")
def revoke(*, token: str) -> CommandResult:
    """Revoke the token with this id or label."""
    with _open_tokens() as tokens:
        tokens.revoke(token, actor=get_actor())
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


def _serialize_token(token: Token, tokens: AccessTokens) -> dict[str, object]:
    from skillhall._internal.http.users import serialize_token

    return serialize_token(token, tokens)


def _format_cell(value: object) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return "-" if value is None else str(value)
