"""The `skillhall session` commands on templates and snapshots."""

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
    """Manage templates: saved blocks for new sessions."""
    print_group_help(ctx)


@template.command("list", epilog="Example: skillhall session template list")
@json_option
def list_templates(*, as_json: bool) -> int:
    """List the templates."""
    with open_configured_workspace() as workspace:
        templates = workspace.templates.list()
    if as_json:
        print_session_json(
            "template list",
            {"templates": [_serialize_template(template) for template in templates]},
        )
    else:
        print_rows((template.id, template.name, template.description) for template in templates)
    return 0


@template.command("save", epilog="Example: skillhall session template save Research Start")
@click.argument("session")
@click.argument("name")
@click.option("--description", default="", metavar="TEXT", help="Describe the template.")
@click.option("--update", is_flag=True, help="Replace the existing template NAME.")
@json_option
def save_template(*, session: str, name: str, description: str, update: bool, as_json: bool) -> int:
    """Save the blocks of SESSION as the template NAME."""
    with open_configured_workspace() as workspace:
        source = find_session(workspace, session).id
        if update:
            old = workspace.templates.find(name).template
            saved = workspace.templates.edit(
                old.id, old.version, description=description or None, session=source
            )
        else:
            saved = workspace.templates.save(source, name, description)
    if as_json:
        print_session_json("template save", {"template": _serialize_template(saved)})
    else:
        print_ids([saved.id])
    return 0


@template.command("apply", epilog="Example: skillhall session template apply Start Research")
@click.argument("template_name", metavar="TEMPLATE")
@click.argument("session")
@click.option("--replace", is_flag=True, help="Replace the existing blocks.")
@json_option
def apply_template(*, template_name: str, session: str, replace: bool, as_json: bool) -> int:
    """Append the blocks of TEMPLATE to SESSION, or replace its blocks."""
    from skillhall._internal.workspace.templates import ApplyMode

    mode = ApplyMode.REPLACE if replace else ApplyMode.APPEND
    with open_configured_workspace() as workspace:
        result = workspace.templates.apply(find_session(workspace, session).id, template_name, mode)
    before = None if result.before is None else result.before.id
    if as_json:
        data = {
            "session": serialize_session(result.session),
            "blocks": result.block_count,
            "before": before,
        }
        print_session_json("template apply", data)
    elif before:
        print_message(f"to undo, run: skillhall session restore {result.session.id} {before}")
    return 0


@template.command("delete", epilog="Example: skillhall session template delete Start")
@click.argument("template_name", metavar="TEMPLATE")
@json_option
def delete_template(*, template_name: str, as_json: bool) -> int:
    """Delete TEMPLATE. Sessions created from it are not affected."""
    with open_configured_workspace() as workspace:
        old = workspace.templates.find(template_name).template
        workspace.templates.delete(old.id, old.version)
    if as_json:
        print_session_json("template delete", {"deleted": old.id})
    return 0


@click.command("snapshot", epilog="Example: skillhall session snapshot Research before-review")
@click.argument("session")
@click.argument("name", required=False)
@json_option
def snapshot(*, session: str, name: str | None, as_json: bool) -> int:
    """Save SESSION as the snapshot NAME. Without NAME, list the snapshots."""
    with open_configured_workspace() as workspace:
        session_id = find_session(workspace, session).id
        snapshots = (
            [workspace.snapshots.save(session_id, name)]
            if name
            else workspace.snapshots.list(session_id)
        )
    if as_json:
        print_session_json(
            "snapshot", {"snapshots": [_serialize_snapshot(saved) for saved in snapshots]}
        )
    elif name:
        print_ids(saved.id for saved in snapshots)
    else:
        print_rows((saved.id, saved.name, saved.created) for saved in snapshots)
    return 0


@click.command("restore", epilog="Example: skillhall session restore Research before-review")
@click.argument("session")
@click.argument("snapshot_name", metavar="SNAPSHOT")
@json_option
def restore(*, session: str, snapshot_name: str, as_json: bool) -> int:
    """Restore SESSION to SNAPSHOT, an id or a name. The current state is saved as a snapshot."""
    with open_configured_workspace() as workspace:
        session_id = find_session(workspace, session).id
        ids = {saved.name: saved.id for saved in reversed(workspace.snapshots.list(session_id))}
        result = workspace.snapshots.restore(session_id, ids.get(snapshot_name, snapshot_name))
    if as_json:
        data = {
            "session": serialize_session(result.session),
            "before": _serialize_snapshot(result.before),
        }
        print_session_json("restore", data)
    else:
        print_message(f"to undo, run: skillhall session restore {session_id} {result.before.id}")
    return 0


def _serialize_template(template: Template) -> dict[str, object]:
    return {
        "id": template.id,
        "name": template.name,
        "description": template.description,
        "version": template.version,
    }


def _serialize_snapshot(snapshot: SessionSnapshot) -> dict[str, object]:
    return {
        "id": snapshot.id,
        "name": snapshot.name,
        "revision": snapshot.revision,
        "automatic": snapshot.automatic,
        "created": snapshot.created,
    }


TEMPLATE_COMMANDS = (template, snapshot, restore)
