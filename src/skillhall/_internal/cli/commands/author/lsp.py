"""`skillhall lsp`: the language server for SKILL.md files."""

import gc

import click

from skillhall._internal.authoring.portability import check_agents
from skillhall._internal.cli.command_result import CommandResult, is_json
from skillhall._internal.cli.errors import require_extra
from skillhall._internal.cli.options import follow_links_option, json_command, profile_option
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.installer.agent_folders import AGENTS
from skillhall._internal.wiring.catalog import find_profile


@json_command("lsp", "skillhall lsp")
@profile_option("specification")
@click.option(
    "-a",
    "--agent",
    "agents",
    multiple=True,
    metavar="ID",
    help="Also report what this agent or library would drop or lose. Repeatable.",
)
@follow_links_option
def command(*, profile: str, agents: tuple[str, ...], follow_links: bool) -> CommandResult | None:
    """Serve an editor over stdin and stdout, by the Language Server Protocol.

    Editors start this command. It reports the findings of validate while you type, and offers
    fixes, completion, hover texts, links, renames, an outline and token counts. With --json, it
    checks that the server can start, and exits.
    """
    check_agents(agents, AGENTS)
    settings = read_settings(follow_links=follow_links)
    chosen = find_profile(profile)
    with require_extra("lsp", "the language server is"):
        from skillhall._internal.lsp.language_server import serve_editor
    if is_json():
        return CommandResult({"profile": chosen.name})
    gc.enable()  # it is off for commands, which are short
    serve_editor(chosen, settings, agents)
    return None
