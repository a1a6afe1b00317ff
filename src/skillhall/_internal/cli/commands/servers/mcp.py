"""`skillhall mcp`: the skills of folders for an MCP client that starts us."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.errors import CommandFailed
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

_EXTRA_PACKAGES = frozenset({"anyio", "mcp", "mcp_types", "pydantic", "starlette"})


@click.command("mcp", epilog="Example: claude mcp add skills -- skillhall mcp ~/skills")
@click.argument("roots", nargs=-1, metavar="[ROOT]...")
@profile_option()
@click.option("--check", is_flag=True, help="Show what clients would find, and serve nothing.")
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
    """Serve the skills below each ROOT, or in the folders where agents keep them, by MCP.

    A client starts this command and speaks to it by stdin and stdout; it ends when its stdin does.
    With --check, and with --json, it shows what a client would find instead.
    """
    from skillhall._internal.wiring.catalog import find_profile
    from skillhall._internal.wiring.skill_provider import open_folder_provider

    settings = read_settings(no_index=no_index, follow_links=follow_links)
    offering = open_folder_provider(roots, find_profile(profile).with_depth(depth), settings)
    if check or as_json:
        return _print_skills(offering, as_json=as_json)
    return _serve(offering)


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
    gc.enable()  # a server lives long enough to make garbage
    log_to_stderr()
    offer = provider.current_view()
    left_out = len(offer.findings)
    more = f", {format_count(left_out, 'finding')}: see 'skillhall mcp --check'" if left_out else ""
    print_message(f"serving {format_count(len(offer), 'skill')} by stdin and stdout{more}")
    serve_stdio(SkillServer(provider))
    return 0


def _print_skills(provider: FolderSkillProvider, *, as_json: bool) -> int:
    from skillhall._internal.catalog.manifests import list_published

    rows = list_published(provider.current_view())
    findings = [*provider.current_view().findings, *(one for row in rows for one in row.findings)]
    if as_json:
        from skillhall._internal.cli.json_output import print_json_report

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
