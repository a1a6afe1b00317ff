"""Agent set-up for the OpenAI Agents SDK."""

from skillhall._internal.agents.adapters.openai_agents import with_skills
from skillhall._public_path import show_public_path

__all__ = ["with_skills"]

show_public_path(__name__)
