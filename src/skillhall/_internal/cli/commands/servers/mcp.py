"""`skillhall mcp`: serves skills to the MCP client that started the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import (
    json_option,
    no_index_option,
    profile_option,
    search_options,
)
from skillhall._internal.cli.terminal import print_message, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.catalog.skill_view import FolderSkillProvider
    from skillhall._internal.policy.effects import JudgedFinding

# A missing package of the extra gets a hint; any other missing module is a bug.
_EXTRA_PACKAGES = frozenset({"anyio", "mcp", "mcp_types", "pydantic", "starlette"})


@click.command("mcp", epilog="Example: claude mcp add skills -- skillhall mcp ~/skills")
@click.argument("roots", nargs=-1, metavar="[ROOT]...")
@profile_option()
@click.option("--check", is_flag=True, help="Show what clients would see and exit.")
@json_option
@search_options
@no_index_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    roots: tuple[str, ...],
    profile: str,
    check: bool,
    as_json: bool,
    no_index: bool,
    depth: int | None,
    follow_links: bool,
) -> int:
    """Serve the skills below each ROOT, or in the default skill folders, over MCP.

    An MCP client starts this command and talks to it over stdin and stdout. It exits when stdin is
    closed. With --check or --json, it shows what clients would see and exits.
    """
    from skillhall._internal.wiring.catalog import find_profile
    from skillhall._internal.wiring.skill_provider import open_folder_provider

    settings = read_settings(no_index=no_index, follow_links=follow_links)
    provider = open_folder_provider(roots, find_profile(profile).with_depth(depth), settings)
    if check or as_json:
        return _print_skills(provider, as_json=as_json)
    return _serve(provider)


def _serve(provider: FolderSkillProvider) -> int:
    import gc

    try:
        from skillhall._internal.mcp.server import SkillServer
        from skillhall._internal.mcp.stdio import log_to_stderr, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA_PACKAGES:
            raise
        raise CommandFailed(
            "usage", "MCP is not installed", "pip install 'skillhall[mcp]'"
        ) from None
    gc.enable()  # `main` disables it for short commands
    log_to_stderr()
    view = provider.current_view()
    count = len(view.findings)
    more = f", {format_count(count, 'finding')}: see 'skillhall mcp --check'" if count else ""
    print_message(f"serving {format_count(len(view), 'skill')} over stdin and stdout{more}")
    serve_stdio(SkillServer(provider))
    return 0


def _print_skills(provider: FolderSkillProvider, *, as_json: bool) -> int:
    from skillhall._internal.catalog.manifests import list_published

    rows = list_published(provider.current_view())
    findings = [
        *provider.current_view().findings,
        *(judged for row in rows for judged in row.findings),
    ]
    if as_json:
        skills = [{"name": row.name, "uri": row.uri, "listed": row.is_listed} for row in rows]
        print_json_report("mcp", {"skills": skills}, findings)
        return 0
    for row in rows:
        click.echo(
            f"{sanitize_line(row.name)}\t{row.uri}\t{'listed' if row.is_listed else 'not listed'}"
        )
    _print_findings(findings)
    return 0


def _print_findings(findings: Iterable[JudgedFinding]) -> None:
    for finding, effect in findings:
        print_message(sanitize_line(f"{effect}: {finding.path}: {finding.message}"))
