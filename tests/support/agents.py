"""Factories for agents with skills."""

from pathlib import Path

from skillhall._internal.agents.agent_skills import AgentSkills
from skillhall._internal.agents.config.agent_config import AgentBudgets, AgentDefinition
from skillhall._internal.agents.instruction_skills import InstructionSource
from skillhall._internal.settings import Settings


def make_settings(folder: Path, **fields: object) -> Settings:
    """Create settings with `folder` as working directory."""
    settings = Settings(str(folder), str(folder / "cache"), data_directory=str(folder / "data"))
    return settings._replace(**fields)  # type: ignore[arg-type]  # any field of the settings


def make_agent(
    folder: Path,
    *sources: InstructionSource,
    catalog_budget: int | None = None,
    **fields: str | tuple[str, ...],
) -> AgentSkills:
    """Create an agent; its default source is the folder `skills`."""
    skills = sources or (InstructionSource("skills", expected=False),)
    agent = AgentDefinition("coding", skills=skills, budgets=AgentBudgets(catalog_budget), **fields)  # type: ignore[arg-type]  # any field of an agent
    return AgentSkills(agent, make_settings(folder))
