"""The `skillhall session` commands that change blocks."""

import sys
from collections.abc import Callable
from functools import wraps

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.session.lookup import find_block, workspace_command
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import flag
from skillhall._internal.workspace import Session
from skillhall._internal.workspace.ordering import BlockPlacement
from skillhall._internal.workspace.serializers import serialize_block
from skillhall._internal.workspace.validation import parse_zone
from skillhall._internal.workspace.workspace import Workspace

_STDIN_ARGUMENT = "-"


def _placement_options(function: Callable[..., CommandResult]) -> Callable[..., CommandResult]:
    """Add the options for the position of a block, passed on as `placement`."""

    @wraps(function)
    def run(
        workspace: Workspace,
        session: Session,
        *,
        after: str,
        before: str,
        first: bool,
        **others: object,
    ) -> CommandResult:
        after_id = find_block(workspace, session, after).id if after else ""
        before_id = find_block(workspace, session, before).id if before else ""
        placement = BlockPlacement(after_id, before_id, first)
        return function(workspace, session, placement=placement, **others)

    for option in (
        flag("--first", help="Insert it at the start of its zone."),
        click.option("--before", default="", metavar="BLOCK", help="Insert it before this block."),
        click.option("--after", default="", metavar="BLOCK", help="Insert it after this block."),
    ):
        run = option(run)
    return run


@workspace_command("add", "add Research note 'Ask before deleting'")
@click.argument("session")
@click.argument("block_type", metavar="TYPE")
@click.argument("content", default=_STDIN_ARGUMENT)
@click.option(
    "--zone", metavar="ZONE", help="Add it to PERMANENT, STABLE or WORKING.  [default: by type]"
)
@_placement_options
def add(
    workspace: Workspace,
    session: Session,
    *,
    block_type: str,
    content: str,
    zone: str | None,
    placement: BlockPlacement,
) -> CommandResult:
    """Add a block of TYPE to SESSION. Without CONTENT, or with '-', read stdin."""
    text = sys.stdin.read() if content == _STDIN_ARGUMENT else content
    target_zone = None if zone is None else parse_zone(zone)
    block = workspace.blocks.add(session.id, block_type, text, target_zone, placement)
    return CommandResult({"block": serialize_block(block)}, lines=[block.id])


@workspace_command("edit", "edit Research pdf < pdf.md")
@click.argument("session")
@click.argument("block")
@click.argument("content", default=_STDIN_ARGUMENT)
@click.option("--type", "block_type", metavar="TYPE", help="Change the type of the block.")
def edit(
    workspace: Workspace, session: Session, *, block: str, content: str, block_type: str | None
) -> CommandResult:
    """Replace the content of BLOCK. Without CONTENT, or with '-', read stdin."""
    text = sys.stdin.read() if content == _STDIN_ARGUMENT else content
    old = find_block(workspace, session, block)
    edited = workspace.blocks.edit(session.id, old.id, old.version, text=text, kind=block_type)
    return CommandResult({"block": serialize_block(edited)})


@workspace_command("move", "move Research pdf --zone PERMANENT")
@click.argument("session")
@click.argument("block")
@click.option(
    "--zone", metavar="ZONE", help="Move it to PERMANENT, STABLE or WORKING.  [default: its zone]"
)
@_placement_options
def move(
    workspace: Workspace,
    session: Session,
    *,
    block: str,
    zone: str | None,
    placement: BlockPlacement,
) -> CommandResult:
    """Move BLOCK within its zone or to another one. By default, it moves to the end."""
    target_zone = None if zone is None else parse_zone(zone)
    old = find_block(workspace, session, block)
    moved = workspace.blocks.move(session.id, old.id, old.version, target_zone, placement)
    return CommandResult({"block": serialize_block(moved)})


@workspace_command("remove", "remove Research pdf")
@click.argument("session")
@click.argument("block")
def remove(workspace: Workspace, session: Session, *, block: str) -> CommandResult:
    """Remove BLOCK. 'skillhall session undo' restores it."""
    old = find_block(workspace, session, block)
    workspace.blocks.delete(session.id, old.id, old.version)
    message = f"removed {old.id}; 'skillhall session undo' restores it"
    return CommandResult({"deleted": old.id}, messages=[message])


@workspace_command("undo", "undo Research")
@click.argument("session")
def undo(workspace: Workspace, session: Session) -> CommandResult:
    """Restore the block that was removed last."""
    deleted = workspace.blocks.list_deleted(session.id)
    if not deleted:
        raise CommandFailed("not_found", "the session has no removed block to restore")
    restored = workspace.blocks.restore(session.id, deleted[0].id)
    return CommandResult({"block": serialize_block(restored)}, lines=[restored.id])


BLOCK_COMMANDS = (add, edit, move, remove, undo)
