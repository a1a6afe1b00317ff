"""The `skillhall session` commands that change blocks."""

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
    from skillhall._internal.workspace.ordering import BlockPlacement
    from skillhall._internal.workspace.workspace import Workspace

_STDIN_ARGUMENT = "-"


@click.command("add", epilog="Example: skillhall session add Research note 'Ask before deleting'")
@click.argument("session")
@click.argument("type")
@click.argument("content", default=_STDIN_ARGUMENT)
@click.option(
    "--zone", metavar="ZONE", help="Add it to PERMANENT, STABLE or WORKING.  [default: by type]"
)
@click.option("--after", default="", metavar="BLOCK", help="Insert it after this block.")
@click.option("--before", default="", metavar="BLOCK", help="Insert it before this block.")
@click.option("--first", is_flag=True, help="Insert it at the start of its zone.")
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
    """Add a block of TYPE to SESSION. Without CONTENT, or with '-', read stdin."""
    from skillhall._internal.workspace.validation import parse_zone

    text = sys.stdin.read() if content == _STDIN_ARGUMENT else content
    target_zone = None if zone is None else parse_zone(zone)
    with open_configured_workspace() as workspace:
        target = find_session(workspace, session)
        placement = _find_placement(workspace, target, after, before, first=first)
        block = workspace.blocks.add(target.id, type, text, target_zone, placement)
    if as_json:
        print_session_json("add", {"block": serialize_block(block)})
    else:
        print_ids([block.id])
    return 0


@click.command("edit", epilog="Example: skillhall session edit Research pdf < pdf.md")
@click.argument("session")
@click.argument("block")
@click.argument("content", default=_STDIN_ARGUMENT)
@click.option("--type", "block_type", metavar="TYPE", help="Change the type of the block.")
@json_option
def edit(*, session: str, block: str, content: str, block_type: str | None, as_json: bool) -> int:
    """Replace the content of BLOCK. Without CONTENT, or with '-', read stdin."""
    text = sys.stdin.read() if content == _STDIN_ARGUMENT else content
    with open_configured_workspace() as workspace:
        target = find_session(workspace, session)
        old = find_block(workspace, target, block)
        edited = workspace.blocks.edit(target.id, old.id, old.version, text=text, kind=block_type)
    if as_json:
        print_session_json("edit", {"block": serialize_block(edited)})
    return 0


@click.command("move", epilog="Example: skillhall session move Research pdf --zone PERMANENT")
@click.argument("session")
@click.argument("block")
@click.option(
    "--zone", metavar="ZONE", help="Move it to PERMANENT, STABLE or WORKING.  [default: its zone]"
)
@click.option("--after", default="", metavar="BLOCK", help="Insert it after this block.")
@click.option("--before", default="", metavar="BLOCK", help="Insert it before this block.")
@click.option("--first", is_flag=True, help="Insert it at the start of its zone.")
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
    """Move BLOCK within its zone or to another one. By default, it moves to the end."""
    from skillhall._internal.workspace.validation import parse_zone

    target_zone = None if zone is None else parse_zone(zone)
    with open_configured_workspace() as workspace:
        target = find_session(workspace, session)
        old = find_block(workspace, target, block)
        placement = _find_placement(workspace, target, after, before, first=first)
        moved = workspace.blocks.move(target.id, old.id, old.version, target_zone, placement)
    if as_json:
        print_session_json("move", {"block": serialize_block(moved)})
    return 0


@click.command("remove", epilog="Example: skillhall session remove Research pdf")
@click.argument("session")
@click.argument("block")
@json_option
def remove(*, session: str, block: str, as_json: bool) -> int:
    """Remove BLOCK. 'skillhall session undo' restores it."""
    with open_configured_workspace() as workspace:
        target = find_session(workspace, session)
        old = find_block(workspace, target, block)
        workspace.blocks.delete(target.id, old.id, old.version)
    if as_json:
        print_session_json("remove", {"deleted": old.id})
    else:
        print_message(f"removed {old.id}; 'skillhall session undo' restores it")
    return 0


@click.command("undo", epilog="Example: skillhall session undo Research")
@click.argument("session")
@json_option
def undo(*, session: str, as_json: bool) -> int:
    """Restore the block that was removed last."""
    from skillhall._internal.cli.errors import CommandFailed

    with open_configured_workspace() as workspace:
        target = find_session(workspace, session)
        deleted = workspace.blocks.list_deleted(target.id)
        if not deleted:
            raise CommandFailed("not_found", "the session has no removed block to restore")
        restored = workspace.blocks.restore(target.id, deleted[0].id)
    if as_json:
        print_session_json("undo", {"block": serialize_block(restored)})
    else:
        print_ids([restored.id])
    return 0


def _find_placement(
    workspace: Workspace, session: Session, after: str, before: str, *, first: bool
) -> BlockPlacement:
    from skillhall._internal.workspace.ordering import BlockPlacement

    after_id = find_block(workspace, session, after).id if after else ""
    before_id = find_block(workspace, session, before).id if before else ""
    return BlockPlacement(after_id, before_id, first)


BLOCK_COMMANDS = (add, edit, move, remove, undo)
