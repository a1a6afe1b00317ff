"""`skillhall list`: the options; the output is in `list_output`."""

from __future__ import annotations

import click

from skillhall._internal.cli.commands.browse.list_output import print_list
from skillhall._internal.cli.fast_list import ListRequest
from skillhall._internal.cli.options import (
    json_option,
    no_index_option,
    profile_option,
    search_options,
)


@click.command("list", epilog="Example: skillhall list .agents/skills --json")
@click.argument("roots", nargs=-1, metavar="[ROOT]...")
@profile_option()
@json_option
@click.option(
    "-l", "--long", is_flag=True, help="Show tokens and files; reads each skill completely."
)
@search_options
@no_index_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    roots: tuple[str, ...],
    profile: str,
    as_json: bool,
    long: bool,
    no_index: bool,
    depth: int | None,
    follow_links: bool,
) -> int:
    """List the skills below each ROOT, or in the default skill folders.

    Without --long, only the frontmatter of each SKILL.md is read, so a damaged body goes unnoticed.
    In a pipe, the output is name, description and location, separated by tabs.
    """
    return print_list(ListRequest(roots, profile, as_json, long, no_index, depth, follow_links))
