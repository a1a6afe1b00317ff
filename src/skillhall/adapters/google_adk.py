"""Toolset for Google ADK."""

from skillhall._internal.agents.adapters.google_adk import SkillsToolset
from skillhall._public_path import show_public_path

__all__ = ["SkillsToolset"]

show_public_path(__name__)
