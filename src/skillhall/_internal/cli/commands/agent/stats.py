"""`skillhall stats`: shows which skills agents use."""

from __future__ import annotations

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.param_types import ConfiguredAgentParam
from skillhall._internal.cli.project_options import print_table_or_rows
from skillhall._internal.cli.terminal import print_message


@click.command("stats", epilog="Example: skillhall stats --agent coding")
@click.option(
    "--agent", type=ConfiguredAgentParam(), metavar="ID", help="Count only the usage of this agent."
)
@json_option
def command(*, agent: str | None, as_json: bool) -> int:
    """Show how often skills were offered, loaded and read, most loaded first.

    Usage is recorded on this machine only, by name and without content. SKILLHALL_USAGE_LOG=off
    disables it.
    """
    from skillhall._internal.agents.usage_stats import count_usage

    uses = count_usage(read_settings(), agent)
    if as_json:
        from dataclasses import asdict

        print_json_report("stats", {"skills": [asdict(use) for use in uses]})
        return 0
    if not uses:
        print_message("No usage recorded yet.")
        return 0
    rows = [(use.skill, use.loaded, use.read, use.offered, use.tokens, use.last) for use in uses]
    print_table_or_rows(["skill", "loaded", "read", "offered", "tokens", "last used"], rows)
    return 0
