"""`skillhall session`: sessions, whose blocks are compiled into the context of a model."""

from __future__ import annotations

import sys

import click

from skillhall._internal.cli.commands.session.blocks import BLOCK_COMMANDS
from skillhall._internal.cli.commands.session.files import FILE_COMMANDS
from skillhall._internal.cli.commands.session.lookup import (
    find_session,
    format_block_row,
    iter_sessions,
    open_configured_workspace,
    print_ids,
    print_session_json,
)
from skillhall._internal.cli.commands.session.templates import TEMPLATE_COMMANDS
from skillhall._internal.cli.options import confirm, json_option, print_group_help
from skillhall._internal.cli.terminal import print_message, print_rows, print_text
from skillhall._internal.workspace.serializers import serialize_block, serialize_session


@click.group("session", invoke_without_command=True, epilog="Example: skillhall session list")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Manage sessions: ordered blocks in three zones. All commands accept --json.

    SESSION is a name or an id. BLOCK is an id, the end of an id, or the name of a skill.
    """
    print_group_help(ctx)


@command.command("list", epilog="Example: skillhall session list --json")
@json_option
def list_sessions(*, as_json: bool) -> int:
    """List the sessions."""
    with open_configured_workspace() as workspace:
        sessions = [*iter_sessions(workspace)]
    if as_json:
        print_session_json("list", {"sessions": [*map(serialize_session, sessions)]})
    else:
        print_rows((session.id, session.name, session.updated) for session in sessions)
    return 0


@command.command("new", epilog="Example: skillhall session new Research --template Start")
@click.argument("name")
@click.option("--template", metavar="TEMPLATE", help="Start with the blocks of this template.")
@click.option("--budget", type=click.IntRange(0), metavar="TOKENS", help="Set the total budget.")
@json_option
def create(*, name: str, template: str | None, budget: int | None, as_json: bool) -> int:
    """Create the session NAME."""
    from skillhall._internal.workspace import SessionBudgets

    with open_configured_workspace() as workspace:
        if template is None:
            session = workspace.sessions.create(name, SessionBudgets(total=budget))
        else:
            session = workspace.templates.create_session(template, name)
            if budget is not None:
                session = workspace.sessions.edit(
                    session.id, session.version, name=None, budgets=SessionBudgets(total=budget)
                )
    if as_json:
        print_session_json("new", {"session": serialize_session(session)})
    else:
        print_ids([session.id])
    return 0


@command.command("show", epilog="Example: skillhall session show Research --type skill")
@click.argument("session")
@click.option("--type", "block_type", metavar="TYPE", help="Show only blocks of this type.")
@click.option("--zone", metavar="ZONE", help="Show only blocks of this zone.")
@click.option("-q", "--text", default="", metavar="TEXT", help="Show only blocks with this text.")
@json_option
def show(
    *, session: str, block_type: str | None, zone: str | None, text: str, as_json: bool
) -> int:
    """Show the blocks of SESSION in order. Token counts are estimates."""
    from skillhall._internal.workspace.blocks import BlockFilter
    from skillhall._internal.workspace.validation import parse_zone, validate_block_type

    block_filter = BlockFilter(
        None if zone is None else parse_zone(zone),
        None if block_type is None else validate_block_type(block_type),
        text,
    )
    with open_configured_workspace() as workspace:
        target = find_session(workspace, session)
        blocks = workspace.blocks.list(target.id, block_filter)
    if as_json:
        data = {"session": serialize_session(target), "blocks": [*map(serialize_block, blocks)]}
        print_session_json("show", data)
    else:
        print_rows(map(format_block_row, blocks))
    return 0


@command.command("rename", epilog="Example: skillhall session rename Research Thesis")
@click.argument("session")
@click.argument("name")
@json_option
def rename(*, session: str, name: str, as_json: bool) -> int:
    """Rename SESSION to NAME."""
    with open_configured_workspace() as workspace:
        target = find_session(workspace, session)
        renamed = workspace.sessions.edit(target.id, target.version, name=name, budgets=None)
    if as_json:
        print_session_json("rename", {"session": serialize_session(renamed)})
    return 0


@command.command("copy", epilog="Example: skillhall session copy Research")
@click.argument("session")
@click.option("--name", metavar="NAME", help="Name the copy.")
@json_option
def copy(*, session: str, name: str | None, as_json: bool) -> int:
    """Create a copy of SESSION."""
    with open_configured_workspace() as workspace:
        created = workspace.sessions.duplicate(find_session(workspace, session).id, name)
    if as_json:
        print_session_json("copy", {"session": serialize_session(created)})
    else:
        print_ids([created.id])
    return 0


@command.command("delete", epilog="Example: skillhall session delete Research --yes")
@click.argument("session")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def delete(*, session: str, yes: bool, as_json: bool) -> int:
    """Delete SESSION with its blocks and snapshots. This cannot be undone."""
    with open_configured_workspace() as workspace:
        target = find_session(workspace, session)
        if not yes:
            confirm(f"Delete the session {target.name!r} with all its blocks?", can_ask=not as_json)
        workspace.sessions.delete(target.id, target.version)
    if as_json:
        print_session_json("delete", {"deleted": target.id})
    else:
        print_message(f"deleted {target.name}")
    return 0


@command.command("context", epilog="Example: skillhall session context Research | pbcopy")
@click.argument("session")
@json_option
def context(*, session: str, as_json: bool) -> int:
    """Print the compiled context of SESSION. PERMANENT comes first, then STABLE, then WORKING."""
    with open_configured_workspace() as workspace:
        compiled = workspace.contexts.compile(find_session(workspace, session).id)
    zones = [(zone.zone.value, zone.spending) for zone in compiled.zones]
    rows = [*zones, ("total", compiled.total)]
    if as_json:
        spending = [
            {"zone": name, "tokens": cost.tokens, "budget": cost.budget, "over": cost.is_over}
            for name, cost in rows
        ]
        data = {"text": compiled.text, "spending": spending, "tokensAreEstimates": True}
        print_session_json("context", data)
        return 0
    print_text(compiled.text)
    sys.stdout.flush()
    for name, cost in rows:
        limit = "" if cost.budget is None else f" of {cost.budget}"
        print_message(
            f"{name}: ≈{cost.tokens}{limit} tokens{', over budget' if cost.is_over else ''}"
        )
    return 0


for _command in (*BLOCK_COMMANDS, *FILE_COMMANDS, *TEMPLATE_COMMANDS):
    command.add_command(_command)
