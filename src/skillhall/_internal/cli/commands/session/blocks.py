"""The commands of `skillhall session` that change blocks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.commands.session.lookup import (
    find_block,
    find_session,
    opened_workspace,
    print_ids,
    print_json,
)
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.terminal import say
from skillhall._internal.workspace.serializers import block_data

if TYPE_CHECKING:
    from skillhall._internal.workspace import Session
    from skillhall._internal.workspace.workspace import Workspace

_STDIN = "-"


@click.command("add", epilog="Example: skillhall session add Research note 'Ask before deleting'")
@click.argument("session")
@click.argument("type")
@click.argument("content", default=_STDIN)
@click.option("--zone", metavar="ZONE", help="PERMANENT, STABLE or WORKING; by type if not given.")
@click.option("--after", default="", metavar="BLOCK", help="Put it after this block.")
@click.option("--before", default="", metavar="BLOCK", help="Put it before this block.")
@click.option("--first", is_flag=True, help="Put it first in its zone.")
@json_option
def add(  # noqa: PLR0913 - one parameter for each option
    *,
    session: str,
    type: str,  # noqa: A002 - click names it after the argument
    content: str,
    zone: str | None,
    after: str,
    before: str,
    first: bool,
    as_json: bool,
) -> int:
    """Put a block of TYPE into SESSION; without CONTENT, or with '-', stdin is read."""
    from skillhall._internal.workspace.ordering import Place
    from skillhall._internal.workspace.validation import checked_zone

    text = sys.stdin.read() if content == _STDIN else content
    goal = None if zone is None else checked_zone(zone)
    with opened_workspace() as desk:
        found = find_session(desk, session)
        place = Place(_id(desk, found, after), _id(desk, found, before), first)
        made = desk.blocks.add(found.id, type, text, goal, place)
    if as_json:
        print_json("add", {"block": block_data(made)})
    else:
        print_ids([made.id])
    return 0


@click.command("edit", epilog="Example: skillhall session edit Research pdf < pdf.md")
@click.argument("session")
@click.argument("block")
@click.argument("content", default=_STDIN)
@click.option("--type", "kind", metavar="TYPE", help="Make it a block of this type.")
@json_option
def edit(*, session: str, block: str, content: str, kind: str | None, as_json: bool) -> int:
    """Let BLOCK say something else; without CONTENT, or with '-', stdin is read."""
    text = sys.stdin.read() if content == _STDIN else content
    with opened_workspace() as desk:
        found = find_session(desk, session)
        old = find_block(desk, found, block)
        made = desk.blocks.edit(found.id, old.id, old.version, text=text, kind=kind)
    if as_json:
        print_json("edit", {"block": block_data(made)})
    return 0


@click.command("move", epilog="Example: skillhall session move Research pdf --zone PERMANENT")
@click.argument("session")
@click.argument("block")
@click.option("--zone", metavar="ZONE", help="PERMANENT, STABLE or WORKING; its own if not given.")
@click.option("--after", default="", metavar="BLOCK", help="Put it after this block.")
@click.option("--before", default="", metavar="BLOCK", help="Put it before this block.")
@click.option("--first", is_flag=True, help="Put it first in its zone.")
@json_option
def move(  # noqa: PLR0913 - one parameter for each option
    *,
    session: str,
    block: str,
    zone: str | None,
    after: str,
    before: str,
    first: bool,
    as_json: bool,
) -> int:
    """Move BLOCK, within its zone or into another one; to the end if nothing else is said."""
    from skillhall._internal.workspace.ordering import Place
    from skillhall._internal.workspace.validation import checked_zone

    goal = None if zone is None else checked_zone(zone)
    with opened_workspace() as desk:
        found = find_session(desk, session)
        old = find_block(desk, found, block)
        place = Place(_id(desk, found, after), _id(desk, found, before), first)
        made = desk.blocks.move(found.id, old.id, old.version, goal, place)
    if as_json:
        print_json("move", {"block": block_data(made)})
    return 0


@click.command("remove", epilog="Example: skillhall session remove Research pdf")
@click.argument("session")
@click.argument("block")
@json_option
def remove(*, session: str, block: str, as_json: bool) -> int:
    """Remove BLOCK; 'skillhall session undo' brings it back."""
    with opened_workspace() as desk:
        found = find_session(desk, session)
        old = find_block(desk, found, block)
        desk.blocks.delete(found.id, old.id, old.version)
    if as_json:
        print_json("remove", {"deleted": old.id})
    else:
        say(f"removed {old.id}; 'skillhall session undo' brings it back")
    return 0


@click.command("undo", epilog="Example: skillhall session undo Research")
@click.argument("session")
@json_option
def undo(*, session: str, as_json: bool) -> int:
    """Bring the block back that was removed last."""
    from skillhall._internal.cli.errors import CommandFailed

    with opened_workspace() as desk:
        found = find_session(desk, session)
        gone = desk.blocks.deleted(found.id)
        if not gone:
            raise CommandFailed("not_found", "no removed block is kept in that session")
        back = desk.blocks.bring_back(found.id, gone[0].id)
    if as_json:
        print_json("undo", {"block": block_data(back)})
    else:
        print_ids([back.id])
    return 0


def _id(desk: Workspace, session: Session, block: str) -> str:
    """The id of a block that may be named."""
    return find_block(desk, session, block).id if block else ""


BLOCK_COMMANDS = (add, edit, move, remove, undo)
