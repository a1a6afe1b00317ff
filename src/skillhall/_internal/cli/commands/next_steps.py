"""`skillhall` without a command: the state of this folder, and likely next steps."""

import shlex
from collections.abc import Iterator
from itertools import islice

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.options import json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count, sanitize_line
from skillhall._internal.wiring.folder_overview import FolderOverview, inspect_folder

_STEPS = 3


@json_command("overview", "skillhall")
def command() -> CommandResult:
    """Show the state of this folder, and the most likely next steps."""
    overview = inspect_folder(read_settings())
    steps = [*islice(dict.fromkeys(_suggest_steps(overview)), _STEPS)]
    width = max(len(step) for step, _ in steps)
    return CommandResult(
        {
            "folder": overview.folder,
            "is_skill": overview.is_skill,
            "skills": overview.skills,
            "user_skills": overview.user_skills,
            "rejected": [*overview.rejected],
            "installed": overview.installed,
            "missing": overview.missing,
            "config": overview.config,
            "next": [{"command": step, "purpose": purpose} for step, purpose in steps],
        },
        lines=[
            *_describe(overview),
            "",
            "Next steps:",
            *(f"  {step:<{width}}  {purpose}" for step, purpose in steps),
            "",
            "'skillhall --help' lists all commands.",
        ],
    )


def _describe(overview: FolderOverview) -> Iterator[str]:
    yield from _describe_skills(overview)
    if overview.user_skills:
        yield f"{format_count(overview.user_skills, 'skill')} in your home folder"
    if overview.rejected:
        yield f"{format_count(len(overview.rejected), 'skill')} that agents cannot load"
    if overview.lock_problem:
        yield f"The lock file cannot be used: {sanitize_line(overview.lock_problem)}"
    elif overview.installed:
        missing = f", {overview.missing} of them missing" if overview.missing else ""
        yield f"{format_count(overview.installed, 'skill')} in the lock file{missing}"
    if overview.config:
        yield f"Settings in {overview.config}"


def _describe_skills(overview: FolderOverview) -> Iterator[str]:
    if overview.is_skill:
        yield "This folder is a skill."
    elif not overview.skills:
        yield "There are no skills in this folder."
    for folder, count in overview.skills.items():
        if folder != ".":
            yield f"{format_count(count, 'skill')} in {sanitize_line(folder)}"
        elif not overview.is_skill:
            yield f"{format_count(count, 'skill')} in this folder"


def _suggest_steps(overview: FolderOverview) -> Iterator[tuple[str, str]]:
    """Yield commands with their purposes, the most likely ones first."""
    # Installed skills are updated, the others are written here.
    own = next((folder for folder in overview.skills if not folder.startswith(".")), "")
    own = "." if "." in overview.skills or overview.is_skill else own
    if overview.lock_problem:
        yield "skillhall doctor", "find out what is wrong"
    if overview.missing:
        yield "skillhall install", "install the skills in the lock file"
    if overview.rejected:
        path = shlex.quote(sanitize_line(overview.rejected[0]))
        yield f"skillhall validate {path} --fix", "show and fix its problems"
    if own:
        yield f"skillhall check {own}", "run all checks"
    if overview.is_skill and not overview.has_evals:
        yield "skillhall eval init .", "write test cases"
    elif overview.is_skill:
        yield "skillhall eval run .", "run its test cases"
    if overview.installed:
        yield "skillhall outdated", "see which skills have changed upstream"
    if overview.skills or overview.user_skills:
        # Without a folder, `list` searches those of agents.
        here = own if own == "." and not overview.is_skill else ""
        yield f"skillhall list {here}".rstrip(), "list the skills"
        yield f"skillhall serve {own}".rstrip(), "show them in a browser, and share them"
        yield "skillhall add owner/repository", "add more skills"
    yield "skillhall add owner/repository", "add skills of others"
    yield "skillhall init my-skill", "write your first skill"
    yield "skillhall doctor", "check that everything is set up"
