"""Agent set-up for the OpenAI Agents SDK."""

from skillhall._internal.agents.adapters.openai_agents import with_skills

__all__ = ["with_skills"]
