"""`skillhall stats`: shows which skills agents use."""

from dataclasses import asdict

from skillhall._internal.agents.usage_stats import count_usage
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.options import configured_agent_option, json_command
from skillhall._internal.cli.search_options import read_settings


@json_command("stats", "skillhall stats --agent coding")
@configured_agent_option("Count only the usage of this agent.")
def command(*, agent: str | None) -> CommandResult:
    """Show how often skills were offered, loaded and read, and how often that failed.

    The most loaded skills come first. Usage is recorded on this machine only, by name and without
    content. Set SKILLHALL_USAGE_LOG=off to disable recording.
    """
    uses = count_usage(read_settings(), agent)
    data = {"skills": [asdict(use) for use in uses]}
    if not uses:
        return CommandResult(data, messages=["no usage recorded yet"])
    headings = ["skill", "loaded", "read", "offered", "failed", "tokens", "last used"]
    rows = [
        (use.skill, use.loaded, use.read, use.offered, use.failed, use.tokens, use.last)
        for use in uses
    ]
    return CommandResult(data, headings=headings, rows=rows)
