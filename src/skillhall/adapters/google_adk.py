"""Toolset for Google ADK."""

from skillhall._internal.agents.adapters.google_adk import SkillsToolset

__all__ = ["SkillsToolset"]
