"""`skillhall session`: desks of blocks, out of which a model's context is compiled."""

from __future__ import annotations

import sys

import click

from skillhall._internal.cli.commands.session.blocks import BLOCK_COMMANDS
from skillhall._internal.cli.commands.session.files import FILE_COMMANDS
from skillhall._internal.cli.commands.session.lookup import (
    confirm,
    find_session,
    format_block_row,
    iter_sessions,
    open_configured_workspace,
    print_ids,
    print_session_json,
)
from skillhall._internal.cli.commands.session.templates import TEMPLATE_COMMANDS
from skillhall._internal.cli.options import json_option, print_group_help
from skillhall._internal.cli.terminal import print_message, print_rows, print_text
from skillhall._internal.workspace.serializers import serialize_block, serialize_session


@click.group("session", invoke_without_command=True, epilog="Example: skillhall session list")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Keep sessions: desks of blocks in three zones. All commands take --json.

    SESSION is a name or an id, BLOCK an id, its end, or the name of a skill.
    """
    print_group_help(ctx)


@command.command("list", epilog="Example: skillhall session list --json")
@json_option
def list_sessions(*, as_json: bool) -> int:
    """List the sessions."""
    with open_configured_workspace() as desk:
        found = [*iter_sessions(desk)]
    if as_json:
        print_session_json("list", {"sessions": [serialize_session(one) for one in found]})
    else:
        print_rows((one.id, one.name, one.updated) for one in found)
    return 0


@command.command("new", epilog="Example: skillhall session new Research --template Start")
@click.argument("name")
@click.option("--template", metavar="TEMPLATE", help="Start with the blocks of this template.")
@click.option("--budget", type=click.IntRange(0), metavar="TOKENS", help="For all zones together.")
@json_option
def create(*, name: str, template: str | None, budget: int | None, as_json: bool) -> int:
    """Make the session NAME."""
    from skillhall._internal.workspace import SessionBudgets

    with open_configured_workspace() as desk:
        if template is None:
            made = desk.sessions.create(name, SessionBudgets(total=budget))
        else:
            made = desk.templates.create_session(template, name)
            if budget is not None:
                made = desk.sessions.edit(
                    made.id, made.version, name=None, budgets=SessionBudgets(total=budget)
                )
    if as_json:
        print_session_json("new", {"session": serialize_session(made)})
    else:
        print_ids([made.id])
    return 0


@command.command("show", epilog="Example: skillhall session show Research --type skill")
@click.argument("session")
@click.option("--type", "kind", metavar="TYPE", help="Only blocks of this type.")
@click.option("--zone", metavar="ZONE", help="Only blocks of this zone.")
@click.option("-q", "--text", default="", metavar="TEXT", help="Only blocks with this text.")
@json_option
def show(*, session: str, kind: str | None, zone: str | None, text: str, as_json: bool) -> int:
    """Show the blocks of SESSION in order; token counts are estimates."""
    from skillhall._internal.workspace.blocks import BlockFilter
    from skillhall._internal.workspace.validation import parse_zone, validate_block_type

    wanted = BlockFilter(
        None if zone is None else parse_zone(zone),
        None if kind is None else validate_block_type(kind),
        text,
    )
    with open_configured_workspace() as desk:
        found = find_session(desk, session)
        blocks = desk.blocks.list(found.id, wanted)
    if as_json:
        data = {"session": serialize_session(found), "blocks": [*map(serialize_block, blocks)]}
        print_session_json("show", data)
    else:
        print_rows(map(format_block_row, blocks))
    return 0


@command.command("rename", epilog="Example: skillhall session rename Research Thesis")
@click.argument("session")
@click.argument("name")
@json_option
def rename(*, session: str, name: str, as_json: bool) -> int:
    """Call SESSION NAME."""
    with open_configured_workspace() as desk:
        found = find_session(desk, session)
        made = desk.sessions.edit(found.id, found.version, name=name, budgets=None)
    if as_json:
        print_session_json("rename", {"session": serialize_session(made)})
    return 0


@command.command("copy", epilog="Example: skillhall session copy Research")
@click.argument("session")
@click.option("--name", metavar="NAME", help="What the copy is called.")
@json_option
def copy(*, session: str, name: str | None, as_json: bool) -> int:
    """Make another session with the blocks of SESSION."""
    with open_configured_workspace() as desk:
        made = desk.sessions.duplicate(find_session(desk, session).id, name)
    if as_json:
        print_session_json("copy", {"session": serialize_session(made)})
    else:
        print_ids([made.id])
    return 0


@command.command("delete", epilog="Example: skillhall session delete Research --yes")
@click.argument("session")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def delete(*, session: str, yes: bool, as_json: bool) -> int:
    """Remove SESSION with its blocks and snapshots; nothing brings it back."""
    with open_configured_workspace() as desk:
        found = find_session(desk, session)
        if not yes:
            confirm(f"Delete the session {found.name!r} with all its blocks?", can_ask=not as_json)
        desk.sessions.delete(found.id, found.version)
    if as_json:
        print_session_json("delete", {"deleted": found.id})
    else:
        print_message(f"deleted {found.name}")
    return 0


@command.command("context", epilog="Example: skillhall session context Research | pbcopy")
@click.argument("session")
@json_option
def context(*, session: str, as_json: bool) -> int:
    """Print what a model reads of SESSION: PERMANENT, then STABLE, then WORKING."""
    with open_configured_workspace() as desk:
        compiled = desk.contexts.compile(find_session(desk, session).id)
    zones = [(one.zone.value, one.spending) for one in compiled.zones]
    rows = [*zones, ("total", compiled.total)]
    if as_json:
        told = [
            {"zone": name, "tokens": cost.tokens, "budget": cost.budget, "over": cost.is_over}
            for name, cost in rows
        ]
        data = {"text": compiled.text, "spending": told, "tokensAreEstimates": True}
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


for _one in (*BLOCK_COMMANDS, *FILE_COMMANDS, *TEMPLATE_COMMANDS):
    command.add_command(_one)
