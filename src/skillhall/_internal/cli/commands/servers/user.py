"""`skillhall user`: manages the users of the servers on one database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import require_database
from skillhall._internal.cli.options import command_group, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.wiring.command_actor import get_actor

if TYPE_CHECKING:  # from an optional extra
    from skillhall._internal.wiring.database import User, UserAccounts

command = command_group(
    "user",
    "Manage the users of a server. The first user turns sign-in on. All commands accept --json.",
    epilog="Example: skillhall user add dev1 --role author",
)
_ROLES = click.Choice([*map(str, Role)])
_LINK_MESSAGE = "it works once, within 24 hours, and is not shown again"


@json_command("add", "skillhall user add dev1 --role author", group=command)
@click.argument("name")
@click.option(
    "--role",
    type=_ROLES,
    default=Role.READER.value,
    show_default=True,
    help="Set the role of the user.",
)
@click.option("--display", default="", metavar="TEXT", help="Set the display name.")
@click.option(
    "--subject",
    default="",
    metavar="ID",
    help="Add the person with this subject at the identity provider, without a link.",
)
def add(*, name: str, role: str, display: str, subject: str) -> CommandResult:
    """Add a user and print a link for the person's first sign-in."""
    with _open_accounts() as accounts:
        created = accounts.add(name, Role(role), get_actor(), display, subject)
    link, messages = "", [f"{name} can now sign in at {created.user.issuer}"]
    if created.code:
        link, messages = _build_link(created.code), [_describe_link()]
    if created.tokens:
        count = format_count(created.tokens, "existing token")
        messages.append(f"the role {role} now limits {count} of {name}")
    data = {**_serialize_user(created.user), "link": link, "tokens": created.tokens}
    return CommandResult(data, lines=[link] if link else [], messages=messages)


@json_command("list", "skillhall user list", group=command)
def list_users() -> CommandResult:
    """List the users with their roles, where they sign in, and when they were last seen."""
    with _open_accounts() as accounts:
        data = [_serialize_user(user) for user in accounts.list()]
    columns = ("name", "role", "state", "issuer", "created", "seen", "display")
    return CommandResult(
        {"users": data},
        headings=["name", "role", "state", "identity provider", "created", "last seen", "display"],
        rows=[[str(row[column] or "-") for column in columns] for row in data],
    )


@json_command("role", "skillhall user role dev1 reviewer", group=command)
@click.argument("name")
@click.argument("role", type=_ROLES)
def set_role(*, name: str, role: str) -> CommandResult:
    """Change the role of a user, on all servers within a second."""
    with _open_accounts() as accounts:
        user = accounts.set_role(name, Role(role), get_actor())
    return CommandResult(_serialize_user(user), messages=[f"{name} is now {role}"])


@json_command("disable", "skillhall user disable dev1", group=command)
@click.argument("name")
def disable(*, name: str) -> CommandResult:
    """End the sign-ins of a user and reject the user's tokens, until enabled again."""
    with _open_accounts() as accounts:
        user = accounts.disable(name, get_actor())
    return CommandResult(_serialize_user(user), messages=[f"disabled {name}"])


@json_command("enable", "skillhall user enable dev1", group=command)
@click.argument("name")
def enable(*, name: str) -> CommandResult:
    """Let a disabled user sign in again."""
    with _open_accounts() as accounts:
        user = accounts.enable(name, get_actor())
    return CommandResult(_serialize_user(user), messages=[f"enabled {name}"])


@json_command("link", "skillhall user link dev1", group=command)
@click.argument("name")
def create_link(*, name: str) -> CommandResult:
    """Print a new sign-in link for a user. Earlier links become invalid."""
    with _open_accounts() as accounts:
        created = accounts.create_link(name, get_actor())
    link = _build_link(created.code)
    data = {"name": name, "link": link, "expires": created.expires}
    return CommandResult(data, lines=[link], messages=[_describe_link()])


@json_command("remove", "skillhall user remove dev1", group=command)
@click.argument("name")
def remove(*, name: str) -> CommandResult:
    """Remove a user, revoke the user's tokens and end the user's sign-ins."""
    with _open_accounts() as accounts:
        accounts.remove(name, get_actor())
    return CommandResult({"removed": name}, messages=[f"removed {name}"])


@contextmanager
def _open_accounts() -> Iterator[UserAccounts]:
    """Open the users of the configured database.

    Raises: CommandFailed if a package is missing.
    """
    with require_database():
        from skillhall._internal.wiring.database import open_user_accounts

        accounts, close = open_user_accounts(read_settings())
    try:
        yield accounts
    finally:
        close()


def _build_link(code: str) -> str:
    from skillhall._internal.http.users import build_join_link

    return build_join_link(read_settings().server, code)


def _describe_link() -> str:
    issuer = read_settings().server.oidc.issuer
    use = f"sign in at {issuer} or set a password" if issuer else "set a password"
    return f"send this link to the user to {use}; {_LINK_MESSAGE}"


def _serialize_user(user: User) -> dict[str, object]:
    from skillhall._internal.http.users import serialize_user

    return serialize_user(user)
