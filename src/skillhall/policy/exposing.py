"""Who may see a skill."""

from __future__ import annotations

from typing import Protocol


class Hideable(Protocol):
    """Something that says whether models may know of it."""

    @property
    def hidden(self) -> bool:
        """Whether it asks not to be shown to models."""


def shown_to_models(skill: Hideable) -> bool:
    """Whether prompts, listings and tools for a model may name the skill."""
    return not skill.hidden
