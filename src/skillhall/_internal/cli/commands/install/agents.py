"""`skillhall agents`: lists the supported coding agents."""

from __future__ import annotations

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.project_options import print_table_or_rows


@click.command("agents", epilog="Example: skillhall agents --json")
@json_option
def command(*, as_json: bool) -> int:
    """List the supported coding agents with their folders, and mark those detected here."""
    from skillhall._internal.installer.agent_folders import AGENTS, detect_agents

    settings = read_settings()
    detected = {
        agent.id
        for agent in detect_agents(settings.home, settings.working_directory, settings.variables)
    }
    if as_json:
        agents = [
            {
                "id": agent.id,
                "label": agent.label,
                "project": agent.project_folder,
                "user": agent.user_folder,
                "used": agent.id in detected,
            }
            for agent in AGENTS.values()
        ]
        print_json_report("agents", {"agents": agents})
        return 0
    rows = [
        (agent.id, agent.project_folder, agent.user_folder, "detected" * (agent.id in detected))
        for agent in AGENTS.values()
    ]
    print_table_or_rows(["agent", "project folder", "user folder", ""], rows)
    return 0
