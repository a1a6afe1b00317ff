"""`skillhall rollback`: undoes the last change to a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.param_types import RollbackSkillParam
from skillhall._internal.cli.project_options import (
    open_project,
    print_table_or_rows,
    user_scope_option,
)
from skillhall._internal.cli.terminal import print_message

if TYPE_CHECKING:
    from skillhall._internal.installer.rollback import PastChange


@click.command("rollback", epilog="Example: skillhall rollback pdf")
@click.argument("name", required=False, type=RollbackSkillParam())
@user_scope_option
@click.option("-f", "--force", is_flag=True, help="Roll back even if the skill was edited since.")
@json_option
def command(*, name: str | None, is_user: bool, force: bool, as_json: bool) -> int:
    """Undo the last change to the skill NAME: an add, update or removal.

    Without NAME, list the changes that can be undone, newest first.
    """
    from skillhall._internal.installer.rollback import list_changes, roll_back

    project = open_project(is_user=is_user)
    changes = [roll_back(project, name, force=force)] if name else list_changes(project)
    if as_json:
        print_json_report(
            "rollback", {"changes": [_serialize_change(change) for change in changes]}
        )
    elif name:
        print_message(
            f"rolled back {changes[0].verb} of {', '.join(changes[0].paths)}, {changes[0].time}"
        )
    else:
        rows = [(change.time, change.verb, ", ".join(change.paths)) for change in changes]
        print_table_or_rows(["time", "change", "skill"], rows)
    return 0


def _serialize_change(change: PastChange) -> dict[str, object]:
    return {
        "id": change.id,
        "change": change.verb,
        "time": change.time,
        "paths": list(change.paths),
    }
