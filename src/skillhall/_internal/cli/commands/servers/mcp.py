"""`skillhall mcp`: the skills of folders for an MCP client that starts us."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import counted, read_settings
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import (
    json_option,
    no_index_option,
    profile_option,
    search_options,
)
from skillhall._internal.cli.terminal import clean, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.catalog.skill_view import FolderOffering
    from skillhall._internal.policy.effects import Judged

_EXTRA = frozenset({"anyio", "mcp", "mcp_types", "pydantic", "starlette"})


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
    from skillhall._internal.wiring.catalog import profile_named
    from skillhall._internal.wiring.skill_provider import open_folders

    settings = read_settings(no_index=no_index, follow_links=follow_links)
    offering = open_folders(roots, profile_named(profile).searching(depth), settings)
    if check or as_json:
        return _show(offering, as_json=as_json)
    return _serve(offering)


def _serve(offering: FolderOffering) -> int:
    import gc

    try:
        from skillhall._internal.mcp.server import SkillServer
        from skillhall._internal.mcp.stdio import log_to_stderr, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise CommandFailed(
            "usage", "MCP is not installed", "pip install 'skillhall[mcp]'"
        ) from None
    gc.enable()  # a server lives long enough to make garbage
    log_to_stderr()
    offer = offering.offer()
    left_out = len(offer.findings)
    more = f", {counted(left_out, 'finding')}: see 'skillhall mcp --check'" if left_out else ""
    say(f"serving {counted(len(offer), 'skill')} by stdin and stdout{more}")
    serve_stdio(SkillServer(offering))
    return 0


def _show(offering: FolderOffering, *, as_json: bool) -> int:
    from skillhall._internal.catalog.manifests import published

    rows = published(offering.offer())
    findings = [*offering.offer().findings, *(one for row in rows for one in row.findings)]
    if as_json:
        from skillhall._internal.cli.json_output import print_report

        skills = [{"name": row.name, "uri": row.uri, "listed": row.is_listed} for row in rows]
        print_report("mcp", {"skills": skills}, findings)
        return 0
    for row in rows:
        click.echo(f"{clean(row.name)}\t{row.uri}\t{'listed' if row.is_listed else 'not listed'}")
    _tell(findings)
    return 0


def _tell(findings: Iterable[Judged]) -> None:
    for finding, effect in findings:
        say(clean(f"{effect}: {finding.path}: {finding.message}"))
