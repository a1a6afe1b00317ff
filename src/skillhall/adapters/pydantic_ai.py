"""Toolset for Pydantic AI."""

from skillhall._internal.agents.adapters.pydantic_ai import SkillsToolset

__all__ = ["SkillsToolset"]
