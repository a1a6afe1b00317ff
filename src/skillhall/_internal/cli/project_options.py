"""Options of the commands on installed skills."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from skillhall._internal.cli.options import flag
from skillhall._internal.cli.param_types import completes
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import print_message
from skillhall._internal.installer.agent_folders import AGENTS
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.rollback import list_changes
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.revocation_refresh import refresh_revocations


def open_project(*, is_user: bool, follow_links: bool = False) -> Project:
    """Open the project of the working directory; with `is_user`, the user scope."""
    return Project.from_settings(read_settings(follow_links=follow_links), user=is_user)


def check_revocations(settings: Settings, sources: Iterable[str] = ()) -> None:
    """Fetch the revocations for installed skills and `sources`; print warnings."""
    for warning in refresh_revocations(settings, sources):
        print_message(f"warning: {warning}")


@completes
def complete_coding_agent(params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """List the supported coding agents."""
    del params
    return [(agent, "") for agent in sorted(AGENTS)]


@completes
def complete_installed_skill(params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """List the folder names in the lock file."""
    project = open_project(is_user=bool(params.get("is_user")))
    return _list_folder_names(project.read_lock().entries)


@completes
def complete_changed_skill(params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """List the folder names in the history."""
    changes = list_changes(open_project(is_user=bool(params.get("is_user"))))
    return _list_folder_names(path for change in changes for path in change.paths)


def _list_folder_names(paths: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, "") for name in sorted({path.rpartition("/")[2] for path in paths})]


user_scope_option = flag(
    "-g", "--global", "is_user", help="Use the skills in your home folder instead of the project's."
)
unsigned_option = flag(
    "--unsigned", help="Accept skills whose signature is broken, as if they were not signed."
)
installed_skills_argument = click.argument(
    "names", nargs=-1, metavar="[NAME]...", shell_complete=complete_installed_skill
)
