"""The commands of `skillhall session` that change blocks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.commands.session.lookup import (
    find_block,
    find_session,
    open_configured_workspace,
    print_ids,
    print_session_json,
)
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.terminal import print_message
from skillhall._internal.workspace.serializers import serialize_block

if TYPE_CHECKING:
    from skillhall._internal.workspace import Session
    from skillhall._internal.workspace.workspace import Workspace

_STDIN_ARGUMENT = "-"


@click.command("add", epilog="Example: skillhall session add Research note 'Ask before deleting'")
@click.argument("session")
@click.argument("type")
@click.argument("content", default=_STDIN_ARGUMENT)
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
    from skillhall._internal.workspace.ordering import BlockPlacement
    from skillhall._internal.workspace.validation import parse_zone

    text = sys.stdin.read() if content == _STDIN_ARGUMENT else content
    goal = None if zone is None else parse_zone(zone)
    with open_configured_workspace() as desk:
        found = find_session(desk, session)
        place = BlockPlacement(
            _find_block_id(desk, found, after), _find_block_id(desk, found, before), first
        )
        made = desk.blocks.add(found.id, type, text, goal, place)
    if as_json:
        print_session_json("add", {"block": serialize_block(made)})
    else:
        print_ids([made.id])
    return 0


@click.command("edit", epilog="Example: skillhall session edit Research pdf < pdf.md")
@click.argument("session")
@click.argument("block")
@click.argument("content", default=_STDIN_ARGUMENT)
@click.option("--type", "kind", metavar="TYPE", help="Make it a block of this type.")
@json_option
def edit(*, session: str, block: str, content: str, kind: str | None, as_json: bool) -> int:
    """Let BLOCK say something else; without CONTENT, or with '-', stdin is read."""
    text = sys.stdin.read() if content == _STDIN_ARGUMENT else content
    with open_configured_workspace() as desk:
        found = find_session(desk, session)
        old = find_block(desk, found, block)
        made = desk.blocks.edit(found.id, old.id, old.version, text=text, kind=kind)
    if as_json:
        print_session_json("edit", {"block": serialize_block(made)})
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
    from skillhall._internal.workspace.ordering import BlockPlacement
    from skillhall._internal.workspace.validation import parse_zone

    goal = None if zone is None else parse_zone(zone)
    with open_configured_workspace() as desk:
        found = find_session(desk, session)
        old = find_block(desk, found, block)
        place = BlockPlacement(
            _find_block_id(desk, found, after), _find_block_id(desk, found, before), first
        )
        made = desk.blocks.move(found.id, old.id, old.version, goal, place)
    if as_json:
        print_session_json("move", {"block": serialize_block(made)})
    return 0


@click.command("remove", epilog="Example: skillhall session remove Research pdf")
@click.argument("session")
@click.argument("block")
@json_option
def remove(*, session: str, block: str, as_json: bool) -> int:
    """Remove BLOCK; 'skillhall session undo' brings it back."""
    with open_configured_workspace() as desk:
        found = find_session(desk, session)
        old = find_block(desk, found, block)
        desk.blocks.delete(found.id, old.id, old.version)
    if as_json:
        print_session_json("remove", {"deleted": old.id})
    else:
        print_message(f"removed {old.id}; 'skillhall session undo' brings it back")
    return 0


@click.command("undo", epilog="Example: skillhall session undo Research")
@click.argument("session")
@json_option
def undo(*, session: str, as_json: bool) -> int:
    """Bring the block back that was removed last."""
    from skillhall._internal.cli.errors import CommandFailed

    with open_configured_workspace() as desk:
        found = find_session(desk, session)
        gone = desk.blocks.list_deleted(found.id)
        if not gone:
            raise CommandFailed("not_found", "no removed block is kept in that session")
        back = desk.blocks.restore(found.id, gone[0].id)
    if as_json:
        print_session_json("undo", {"block": serialize_block(back)})
    else:
        print_ids([back.id])
    return 0


def _find_block_id(workspace: Workspace, session: Session, block: str) -> str:
    """The id of a block that may be named."""
    return find_block(workspace, session, block).id if block else ""


BLOCK_COMMANDS = (add, edit, move, remove, undo)
