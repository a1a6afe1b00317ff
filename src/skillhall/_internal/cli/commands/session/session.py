"""`skillhall session`: manages sessions and prints their compiled context."""

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.session.blocks import BLOCK_COMMANDS
from skillhall._internal.cli.commands.session.files import FILE_COMMANDS
from skillhall._internal.cli.commands.session.lookup import iter_sessions, workspace_command
from skillhall._internal.cli.commands.session.templates import TEMPLATE_COMMANDS
from skillhall._internal.cli.options import command_group, confirm, yes_option
from skillhall._internal.cli.terminal import sanitize_line
from skillhall._internal.workspace import Block, Session, SessionBudgets
from skillhall._internal.workspace.blocks import BlockFilter
from skillhall._internal.workspace.serializers import (
    serialize_block,
    serialize_context,
    serialize_session,
)
from skillhall._internal.workspace.validation import parse_zone, validate_block_type
from skillhall._internal.workspace.workspace import Workspace

_MAX_TITLE_LENGTH = 60  # characters of a block's text in a list

command = command_group(
    "session",
    "Manage sessions: ordered blocks in three zones. All commands accept --json.\n\n"
    "SESSION is a name or an id. BLOCK is an id, the end of an id, or the name of a skill.",
    epilog="Example: skillhall session list",
)


@workspace_command("list", "list --json")
def list_sessions(workspace: Workspace) -> CommandResult:
    """List the sessions."""
    sessions = [*iter_sessions(workspace)]
    return CommandResult(
        {"sessions": [*map(serialize_session, sessions)]},
        rows=[(session.id, session.name, session.updated) for session in sessions],
    )


@workspace_command("new", "new Research --template Start")
@click.argument("name")
@click.option("--template", metavar="TEMPLATE", help="Start with the blocks of this template.")
@click.option(
    "--budget",
    type=click.IntRange(0),
    metavar="TOKENS",
    help="Set the token budget of the session.",
)
def create(
    workspace: Workspace, *, name: str, template: str | None, budget: int | None
) -> CommandResult:
    """Create the session NAME."""
    budgets = SessionBudgets(total=budget)
    if template is None:
        session = workspace.sessions.create(name, budgets)
    else:
        session = workspace.templates.create_session(template, name)
        if budget is not None:
            session = workspace.sessions.edit(
                session.id, session.version, name=None, budgets=budgets
            )
    return CommandResult({"session": serialize_session(session)}, lines=[session.id])


@workspace_command("show", "show Research --type skill")
@click.argument("session")
@click.option("--type", "block_type", metavar="TYPE", help="Show only blocks of this type.")
@click.option("--zone", metavar="ZONE", help="Show only blocks of this zone.")
@click.option(
    "-q", "--text", default="", metavar="TEXT", help="Show only blocks that contain this text."
)
def show(
    workspace: Workspace, session: Session, *, block_type: str | None, zone: str | None, text: str
) -> CommandResult:
    """Show the blocks of SESSION in order. Token counts are estimates."""
    block_filter = BlockFilter(
        None if zone is None else parse_zone(zone),
        None if block_type is None else validate_block_type(block_type),
        text,
    )
    blocks = workspace.blocks.list(session.id, block_filter)
    data = {"session": serialize_session(session), "blocks": [*map(serialize_block, blocks)]}
    return CommandResult(data, rows=map(_format_block, blocks))


def _format_block(block: Block) -> tuple[str, ...]:
    content = block.content
    title = content.skill.name if content.skill else sanitize_line(content.text)[:_MAX_TITLE_LENGTH]
    return block.id, content.zone.value, content.type, f"≈{content.tokens}", title


@workspace_command("rename", "rename Research Thesis")
@click.argument("session")
@click.argument("name")
def rename(workspace: Workspace, session: Session, *, name: str) -> CommandResult:
    """Rename SESSION to NAME."""
    renamed = workspace.sessions.edit(session.id, session.version, name=name, budgets=None)
    return CommandResult({"session": serialize_session(renamed)})


@workspace_command("copy", "copy Research")
@click.argument("session")
@click.option("--name", metavar="NAME", help="Name the copy.")
def copy(workspace: Workspace, session: Session, *, name: str | None) -> CommandResult:
    """Create a copy of SESSION."""
    created = workspace.sessions.duplicate(session.id, name)
    return CommandResult({"session": serialize_session(created)}, lines=[created.id])


@workspace_command("delete", "delete Research --yes")
@click.argument("session")
@yes_option
def delete(workspace: Workspace, session: Session, *, yes: bool) -> CommandResult:
    """Delete SESSION with its blocks and snapshots. This cannot be undone."""
    if not yes:
        confirm(f"Delete the session {session.name!r} with all its blocks?")
    workspace.sessions.delete(session.id, session.version)
    return CommandResult({"deleted": session.id}, messages=[f"deleted {session.name}"])


@workspace_command("context", "context Research | pbcopy")
@click.argument("session")
def context(workspace: Workspace, session: Session) -> CommandResult:
    """Print the compiled context of SESSION.

    PERMANENT comes first, then STABLE, then WORKING.
    """
    compiled = workspace.contexts.compile(session.id)
    zones = [(zone.zone.value, zone.spending) for zone in compiled.zones]
    costs = [*zones, ("total", compiled.total)]
    spending = [
        {"zone": name, "tokens": cost.tokens, "budget": cost.budget, "over": cost.is_over}
        for name, cost in costs
    ]
    messages = []
    for name, cost in costs:
        limit = "" if cost.budget is None else f" of {cost.budget}"
        over = ", over budget" if cost.is_over else ""
        messages.append(f"{name}: ≈{cost.tokens}{limit} tokens{over}")
    data = {**serialize_context(compiled), "spending": spending}
    return CommandResult(data, text=compiled.text, messages=messages)


_SESSION_COMMANDS = (list_sessions, create, show, rename, copy, delete, context)
for _command in (*_SESSION_COMMANDS, *BLOCK_COMMANDS, *FILE_COMMANDS, *TEMPLATE_COMMANDS):
    command.add_command(_command)
