"""Selects the configured agent for a command."""

from collections.abc import Callable

import click

from skillhall._internal.agents.agent_skills import (
    DEFAULT_AGENT,
    AgentSkills,
    AgentSkillsSnapshot,
    GatedAgentSkills,
    build_default_agent,
    estimate_load_tokens,
)
from skillhall._internal.agents.config.agent_config import (
    CONFIG_FILES,
    AgentDefinition,
    find_config,
    read_config,
)
from skillhall._internal.cli.commands.trust_question import (
    TrustOptions,
    ask_about_held,
    open_command_gate,
    report_held,
)
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.policy.profiles import INSTRUCTION_SKILLS, LENIENT
from skillhall._internal.render.prompt_plan import PromptPlan
from skillhall._internal.settings import Settings


def open_agent_skills(  # noqa: PLR0913 - each is an option of its own
    config_path: str | None,
    agent_id: str | None,
    roots: tuple[str, ...],
    settings: Settings,
    trust: TrustOptions,
    *,
    adjust: Callable[[AgentDefinition], AgentDefinition] = lambda agent: agent,
) -> AgentSkills:
    """Open the skills of the selected agent, else those in `roots` or the defaults.

    `adjust` may change the agent first. On a terminal, ask about skills of the project that the
    user has not approved.
    Raises: ConfigInvalid, CommandFailed.
    """
    if roots and (agent_id or config_path):
        raise click.UsageError("--root cannot be combined with --agent or --config")
    # The default agent needs no config file; it is looked up there only with --config.
    name = None if agent_id == DEFAULT_AGENT and not config_path else agent_id
    is_configured = (
        name or config_path or (not agent_id and find_config(settings.working_directory))
    )
    profile, agent = LENIENT, build_default_agent(roots)
    if is_configured and not roots:
        profile, agent = INSTRUCTION_SKILLS, _select_agent(config_path, name, settings)
    gate = open_command_gate(settings, profile, trust)
    skills = GatedAgentSkills(adjust(agent), settings, gate, profile)
    ask_about_held(skills.snapshot().instructions.held, settings)
    loaded = skills.snapshot().instructions
    report_held(loaded.held, loaded.trust_problem, loaded.trust_warnings, trust)
    return skills


def _select_agent(
    config_path: str | None, agent_id: str | None, settings: Settings
) -> AgentDefinition:
    path = config_path or find_config(settings.working_directory)
    if path is None:
        raise CommandFailed(
            "not_found",
            f"agent {agent_id!r} not found: no {' or '.join(CONFIG_FILES)} in this folder",
            "name the config with --config, or change to its folder",
        )
    config = read_config(path)
    if agent_id is not None:
        return config.find_agent(agent_id)
    if len(config.agents) != 1:
        known = ", ".join(agent.id for agent in config.agents)
        raise click.UsageError(
            f"select an agent with --agent; the config defines: {known or 'none'}"
        )
    return config.agents[0]


def format_budget_cut(plan: PromptPlan) -> str:
    """Return a note if skills were shortened or omitted to fit the budget, else ""."""
    if not plan.reduced_skills:
        return ""
    return (
        f"{format_count(len(plan.reduced_skills), 'skill')} cut to fit "
        f"{format_count(plan.budget or 0, 'token')}"
    )


def serialize_token_costs(snapshot: AgentSkillsSnapshot) -> dict[str, object]:
    """Return the tokens of each skill, per turn and per load, for JSON output."""
    plan, profile = snapshot.plan, snapshot.skill_view.profile
    by_location = {skill.location: skill for skill in snapshot.instructions.skills}
    shares = [
        {
            "name": share.name,
            "location": share.location,
            "shown": share.detail.value,
            "tokensPerTurn": share.tokens,
            "tokensPerLoad": estimate_load_tokens(by_location[share.location], profile),
        }
        for share in plan.skills
    ]
    return {"tokens": plan.tokens, "budget": plan.budget, "skills": shares}
