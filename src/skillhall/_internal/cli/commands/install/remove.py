"""`skillhall remove` and `skillhall rollback`: remove skills and undo changes."""

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.options import confirm, flag, json_command, yes_option
from skillhall._internal.cli.project_options import (
    complete_changed_skill,
    complete_installed_skill,
    open_project,
    user_scope_option,
)
from skillhall._internal.installer.remove import remove
from skillhall._internal.installer.rollback import list_changes, roll_back


@json_command("remove", "skillhall remove pdf --yes")
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_installed_skill
)
@user_scope_option
@flag("-f", "--force", help="Remove skills even if they were edited or are not in the lock file.")
@yes_option
def command(*, names: tuple[str, ...], is_user: bool, force: bool, yes: bool) -> CommandResult:
    """Remove the skills NAME... from every agent's folder and from the lock file.

    'skillhall rollback NAME' restores a skill.
    """
    project = open_project(is_user=is_user)
    if not yes:
        confirm(f"Remove {', '.join(names)}?")
    keys = remove(project, names, force=force)
    return CommandResult({"removed": keys}, lines=keys)


@json_command("rollback", "skillhall rollback pdf")
@click.argument("name", required=False, shell_complete=complete_changed_skill)
@user_scope_option
@flag("-f", "--force", help="Roll back even if the skill was edited after the change.")
def rollback(*, name: str | None, is_user: bool, force: bool) -> CommandResult:
    """Undo the last change to the skill NAME: an add, update or removal.

    Without NAME, list the changes that can be undone, newest first.
    """
    project = open_project(is_user=is_user)
    changes = [roll_back(project, name, force=force)] if name else list_changes(project)
    data = {
        "changes": [
            {
                "id": change.id,
                "change": change.verb,
                "time": change.time,
                "paths": list(change.paths),
            }
            for change in changes
        ]
    }
    rows = [(change.time, change.verb, ", ".join(change.paths)) for change in changes]
    if name:
        time, verb, paths = rows[0]
        return CommandResult(data, messages=[f"rolled back {verb} of {paths}, {time}"])
    return CommandResult(data, headings=["time", "change", "skill"], rows=rows)
