"""The commands of `skillhall session` on templates and snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.commands.session.lookup import (
    find_session,
    open_configured_workspace,
    print_ids,
    print_session_json,
)
from skillhall._internal.cli.options import json_option, print_group_help
from skillhall._internal.cli.terminal import print_message, print_rows
from skillhall._internal.workspace.serializers import serialize_session

if TYPE_CHECKING:
    from skillhall._internal.workspace import SessionSnapshot, Template


@click.group("template", invoke_without_command=True)
@click.pass_context
def template(ctx: click.Context) -> None:
    """Keep templates: arrangements of blocks that start sessions."""
    print_group_help(ctx)


@template.command("list", epilog="Example: skillhall session template list")
@json_option
def list_templates(*, as_json: bool) -> int:
    """List the templates."""
    with open_configured_workspace() as desk:
        found = desk.templates.list()
    if as_json:
        print_session_json(
            "template list", {"templates": [_serialize_template(one) for one in found]}
        )
    else:
        print_rows((one.id, one.name, one.description) for one in found)
    return 0


@template.command("save", epilog="Example: skillhall session template save Research Start")
@click.argument("session")
@click.argument("name")
@click.option("--description", default="", metavar="TEXT", help="What it is for.")
@click.option("--update", is_flag=True, help="Replace the blocks of the template NAME.")
@json_option
def save_template(*, session: str, name: str, description: str, update: bool, as_json: bool) -> int:
    """Save the blocks of SESSION as the template NAME."""
    with open_configured_workspace() as desk:
        source = find_session(desk, session).id
        if update:
            old = desk.templates.find(name).template
            made = desk.templates.edit(
                old.id, old.version, description=description or None, session=source
            )
        else:
            made = desk.templates.save(source, name, description)
    if as_json:
        print_session_json("template save", {"template": _serialize_template(made)})
    else:
        print_ids([made.id])
    return 0


@template.command("apply", epilog="Example: skillhall session template apply Start Research")
@click.argument("template_name", metavar="TEMPLATE")
@click.argument("session")
@click.option("--replace", is_flag=True, help="In place of the blocks that are there.")
@json_option
def apply_template(*, template_name: str, session: str, replace: bool, as_json: bool) -> int:
    """Put the blocks of TEMPLATE into SESSION, after its own unless they are replaced."""
    from skillhall._internal.workspace.templates import ApplyMode

    how = ApplyMode.REPLACE if replace else ApplyMode.APPEND
    with open_configured_workspace() as desk:
        done = desk.templates.apply(find_session(desk, session).id, template_name, how)
    before = None if done.before is None else done.before.id
    if as_json:
        data = {
            "session": serialize_session(done.session),
            "blocks": done.block_count,
            "before": before,
        }
        print_session_json("template apply", data)
    elif before:
        print_message(
            f"the blocks before are kept: skillhall session restore {done.session.id} {before}"
        )
    return 0


@template.command("delete", epilog="Example: skillhall session template delete Start")
@click.argument("template_name", metavar="TEMPLATE")
@json_option
def delete_template(*, template_name: str, as_json: bool) -> int:
    """Remove TEMPLATE; sessions that it started stay."""
    with open_configured_workspace() as desk:
        old = desk.templates.find(template_name).template
        desk.templates.delete(old.id, old.version)
    if as_json:
        print_session_json("template delete", {"deleted": old.id})
    return 0


@click.command("snapshot", epilog="Example: skillhall session snapshot Research before-review")
@click.argument("session")
@click.argument("name", required=False)
@json_option
def snapshot(*, session: str, name: str | None, as_json: bool) -> int:
    """Save SESSION as it is under NAME; without a name, list what is saved."""
    with open_configured_workspace() as desk:
        found = find_session(desk, session).id
        saved = [desk.snapshots.save(found, name)] if name else desk.snapshots.list(found)
    if as_json:
        print_session_json("snapshot", {"snapshots": [_serialize_snapshot(one) for one in saved]})
    elif name:
        print_ids(one.id for one in saved)
    else:
        print_rows((one.id, one.name, one.created) for one in saved)
    return 0


@click.command("restore", epilog="Example: skillhall session restore Research before-review")
@click.argument("session")
@click.argument("snapshot_name", metavar="SNAPSHOT")
@json_option
def restore(*, session: str, snapshot_name: str, as_json: bool) -> int:
    """Bring SESSION back to SNAPSHOT, an id or a name; as it is, it becomes a snapshot too."""
    with open_configured_workspace() as desk:
        found = find_session(desk, session).id
        known = {one.name: one.id for one in reversed(desk.snapshots.list(found))}
        done = desk.snapshots.restore(found, known.get(snapshot_name, snapshot_name))
    if as_json:
        data = {
            "session": serialize_session(done.session),
            "before": _serialize_snapshot(done.before),
        }
        print_session_json("restore", data)
    else:
        print_message(
            f"the session before is kept: skillhall session restore {found} {done.before.id}"
        )
    return 0


def _serialize_template(one: Template) -> dict[str, object]:
    return {
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "version": one.version,
    }


def _serialize_snapshot(one: SessionSnapshot) -> dict[str, object]:
    return {
        "id": one.id,
        "name": one.name,
        "revision": one.revision,
        "automatic": one.automatic,
        "created": one.created,
    }


TEMPLATE_COMMANDS = (template, snapshot, restore)
