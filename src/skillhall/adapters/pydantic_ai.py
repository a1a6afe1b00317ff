"""Toolset for Pydantic AI."""

from skillhall._internal.agents.adapters.pydantic_ai import SkillsToolset
from skillhall._public_path import show_public_path

__all__ = ["SkillsToolset"]

show_public_path(__name__)
