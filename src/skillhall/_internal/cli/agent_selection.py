"""The agent that a command is about: named by options, described in a config file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.errors import CommandFailed

if TYPE_CHECKING:
    from skillhall._internal.agents.agent_skills import AgentSkills, Built
    from skillhall._internal.agents.config.agent_config import AgentConfig, AgentDefinition
    from skillhall._internal.render.prompt_plan import Plan
    from skillhall._internal.settings import Settings


def chosen_agent(path: str | None, identity: str | None, settings: Settings) -> AgentDefinition:
    """The agent that `--config` and `--agent` name. Raises: ConfigInvalid, CommandFailed."""
    from skillhall._internal.agents.config.agent_config import (
        CONFIG_FILES,
        find_config,
        read_config,
    )

    found = path or find_config(settings.working_directory)
    if found is None:
        raise CommandFailed(
            "not_found",
            f"there is no agent {identity!r}: this folder has no {' and no '.join(CONFIG_FILES)}",
            "name the config with --config, or go to its folder",
        )
    config = read_config(found)
    return config.agent(identity) if identity is not None else _only_agent(config)


def agent_skills(
    path: str | None, identity: str | None, roots: tuple[str, ...], settings: Settings
) -> AgentSkills:
    """The skills of the agent that the options name; without a config, of given or usual folders.

    Raises: ConfigInvalid, CommandFailed.
    """
    from skillhall._internal.agents.agent_skills import DEFAULT_AGENT, AgentSkills
    from skillhall._internal.agents.config.agent_config import find_config

    if roots and (identity or path):
        raise click.UsageError("give --root, or --agent and --config", click.get_current_context())
    named = None if identity == DEFAULT_AGENT and not path else identity
    is_configured = named or path or (not identity and find_config(settings.working_directory))
    if roots or not is_configured:
        return AgentSkills.of(*roots, settings=settings)
    return AgentSkills(chosen_agent(path, named, settings), settings)


def _only_agent(config: AgentConfig) -> AgentDefinition:
    if len(config.agents) != 1:
        known = ", ".join(agent.id for agent in config.agents)
        problem = f"say which agent with --agent; the config has: {known or 'none'}"
        raise click.UsageError(problem, click.get_current_context())
    return config.agents[0]


def cut_of(plan: Plan) -> str:
    """How many skills were shortened or left out to fit the budget; "" if none."""
    from skillhall._internal.cli.catalog_loader import counted

    if not plan.cut:
        return ""
    return f"{counted(len(plan.cut), 'skill')} cut to fit {counted(plan.budget or 0, 'token')}"


def built_as_json(built: Built) -> dict[str, object]:
    """What each skill costs, for scripts: each turn, and when it is loaded."""
    from skillhall._internal.agents.agent_skills import load_tokens

    plan, profile = built.plan, built.offer.profile
    by_place = {skill.location: skill for skill in built.instructions.skills}
    shares = [
        {
            "name": share.name,
            "location": share.location,
            "shown": share.shown.value,
            "tokensPerTurn": share.tokens,
            "tokensPerLoad": load_tokens(by_place[share.location], profile),
        }
        for share in plan.shares
    ]
    return {"tokens": plan.tokens, "budget": plan.budget, "skills": shares}
