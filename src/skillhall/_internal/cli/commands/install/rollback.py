"""`skillhall rollback`: the last change of a skill, taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.param_types import ChangedSkill
from skillhall._internal.cli.project_options import global_option, open_shelf, print_shelf_rows
from skillhall._internal.cli.terminal import say

if TYPE_CHECKING:
    from skillhall._internal.installer.rollback import Past


@click.command("rollback", epilog="Example: skillhall rollback pdf")
@click.argument("name", required=False, type=ChangedSkill())
@global_option
@click.option("-f", "--force", is_flag=True, help="Also if it was edited since.")
@json_option
def command(*, name: str | None, is_user: bool, force: bool, as_json: bool) -> int:
    """Take back the last change of the skill NAME: an add, update or removal.

    Without NAME, the changes are listed that can be taken back, newest first.
    """
    from skillhall._internal.installer.rollback import past_changes, undo

    shelf = open_shelf(is_user=is_user)
    changes = [undo(shelf, name, force=force)] if name else past_changes(shelf)
    if as_json:
        from skillhall._internal.cli.json_output import print_report

        print_report("rollback", {"changes": [_fields(change) for change in changes]})
    elif name:
        say(f"taken back: {changes[0].verb} of {', '.join(changes[0].places)}, {changes[0].time}")
    else:
        rows = [(change.time, change.verb, ", ".join(change.places)) for change in changes]
        print_shelf_rows(["time", "change", "skill"], rows)
    return 0


def _fields(change: Past) -> dict[str, object]:
    return {
        "id": change.id,
        "change": change.verb,
        "time": change.time,
        "paths": list(change.places),
    }
