"""`skillhall stats`: which skills agents are offered, load and read."""

from __future__ import annotations

import click

from skillhall.surfaces.cli.completing import ConfiguredAgent
from skillhall.surfaces.cli.loading import read_settings
from skillhall.surfaces.cli.options import json_option
from skillhall.surfaces.cli.shelves import print_shelf_rows
from skillhall.surfaces.cli.terminal import say


@click.command("stats", epilog="Example: skillhall stats --agent coding")
@click.option("--agent", type=ConfiguredAgent(), metavar="ID", help="What one agent did.")
@json_option
def command(*, agent: str | None, as_json: bool) -> int:
    """Show how often skills were offered, loaded and read, the most loaded first.

    It is noted on this machine, by name and without content; SKILLHALL_USAGE_LOG=off ends that.
    """
    from skillhall.agents.statistics import count_usage

    uses = count_usage(read_settings(), agent)
    if as_json:
        from dataclasses import asdict

        from skillhall.surfaces.cli.output import print_report

        print_report("stats", {"skills": [asdict(use) for use in uses]})
        return 0
    if not uses:
        say("nothing is noted yet")
        return 0
    rows = [(use.skill, use.loaded, use.read, use.offered, use.tokens, use.last) for use in uses]
    print_shelf_rows(["skill", "loaded", "read", "offered", "tokens", "last used"], rows)
    return 0
