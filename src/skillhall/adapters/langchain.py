"""Middleware for LangChain."""

from skillhall._internal.agents.adapters.langchain import SkillsMiddleware

__all__ = ["SkillsMiddleware"]
