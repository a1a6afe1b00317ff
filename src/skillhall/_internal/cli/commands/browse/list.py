"""`skillhall list`: the options; the output is in `list_output`."""

from skillhall._internal.cli.command_result import is_json
from skillhall._internal.cli.commands.browse.list_output import print_list
from skillhall._internal.cli.fast_list import ListRequest
from skillhall._internal.cli.options import flag, json_command, root_search_options
from skillhall._internal.cli.search_options import SearchOptions


@json_command("list", "skillhall list .agents/skills --json")
@root_search_options
@flag("-l", "--long", help="Show token and file counts. Reads each skill completely.")
def command(*, search: SearchOptions, long: bool) -> int:
    """List the skills below each ROOT, or in the default skill folders.

    Without --long, only the frontmatter of each SKILL.md is read, so a damaged body goes unnoticed.
    In a pipe, the output is name, description and location, separated by tabs.
    """
    return print_list(ListRequest(search, is_json(), long))
