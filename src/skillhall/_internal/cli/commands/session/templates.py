"""The `skillhall session` commands on templates and snapshots."""

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.session.lookup import workspace_command
from skillhall._internal.cli.options import command_group, flag
from skillhall._internal.workspace import Session
from skillhall._internal.workspace.serializers import (
    serialize_session,
    serialize_snapshot,
    serialize_template,
)
from skillhall._internal.workspace.templates import ApplyMode
from skillhall._internal.workspace.workspace import Workspace

template_group = command_group("template", "Manage templates: saved blocks for new sessions.")


@workspace_command("list", "template list")
def list_templates(workspace: Workspace) -> CommandResult:
    """List the templates."""
    templates = workspace.templates.list()
    return CommandResult(
        {"templates": [*map(serialize_template, templates)]},
        rows=[(template.id, template.name, template.description) for template in templates],
    )


@workspace_command("save", "template save Research Start")
@click.argument("session")
@click.argument("name")
@click.option("--description", default="", metavar="TEXT", help="Describe the template.")
@flag("--update", help="Replace the existing template NAME.")
def save_template(
    workspace: Workspace, session: Session, *, name: str, description: str, update: bool
) -> CommandResult:
    """Save the blocks of SESSION as the template NAME."""
    if update:
        old = workspace.templates.find(name).template
        saved = workspace.templates.edit(
            old.id, old.version, description=description or None, session=session.id
        )
    else:
        saved = workspace.templates.save(session.id, name, description)
    return CommandResult({"template": serialize_template(saved)}, lines=[saved.id])


@workspace_command("apply", "template apply Start Research")
@click.argument("template")
@click.argument("session")
@flag("--replace", help="Replace the existing blocks.")
def apply_template(
    workspace: Workspace, session: Session, *, template: str, replace: bool
) -> CommandResult:
    """Append the blocks of TEMPLATE to SESSION, or replace its blocks with them."""
    mode = ApplyMode.REPLACE if replace else ApplyMode.APPEND
    result = workspace.templates.apply(session.id, template, mode)
    before = None if result.before is None else result.before.id
    data = {
        "session": serialize_session(result.session),
        "blocks": result.block_count,
        "before": before,
    }
    return CommandResult(data, messages=[_format_undo(session, before)] if before else [])


@workspace_command("delete", "template delete Start")
@click.argument("template")
def delete_template(workspace: Workspace, *, template: str) -> CommandResult:
    """Delete TEMPLATE. Sessions created from it are not affected."""
    old = workspace.templates.find(template).template
    workspace.templates.delete(old.id, old.version)
    return CommandResult({"deleted": old.id})


@workspace_command("snapshot", "snapshot Research before-review")
@click.argument("session")
@click.argument("name", required=False)
def snapshot(workspace: Workspace, session: Session, *, name: str | None) -> CommandResult:
    """Save SESSION as the snapshot NAME. Without NAME, list the snapshots."""
    if name:
        saved = workspace.snapshots.save(session.id, name)
        return CommandResult({"snapshots": [serialize_snapshot(saved)]}, lines=[saved.id])
    snapshots = workspace.snapshots.list(session.id)
    return CommandResult(
        {"snapshots": [*map(serialize_snapshot, snapshots)]},
        rows=[(saved.id, saved.name, saved.created) for saved in snapshots],
    )


@workspace_command("restore", "restore Research before-review")
@click.argument("session")
@click.argument("snapshot_name", metavar="SNAPSHOT")
def restore(workspace: Workspace, session: Session, *, snapshot_name: str) -> CommandResult:
    """Restore SESSION to SNAPSHOT, an id or a name.

    The current state is saved as a snapshot first.
    """
    # Newest last, so that a name that was used twice means the newest snapshot.
    ids = {saved.name: saved.id for saved in reversed(workspace.snapshots.list(session.id))}
    result = workspace.snapshots.restore(session.id, ids.get(snapshot_name, snapshot_name))
    data = {
        "session": serialize_session(result.session),
        "before": serialize_snapshot(result.before),
    }
    return CommandResult(data, messages=[_format_undo(session, result.before.id)])


def _format_undo(session: Session, snapshot_id: str) -> str:
    return f"to undo, run: skillhall session restore {session.id} {snapshot_id}"


for _command in (list_templates, save_template, apply_template, delete_template):
    template_group.add_command(_command)
TEMPLATE_COMMANDS = (template_group, snapshot, restore)
