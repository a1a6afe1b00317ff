"""Who may see a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillhall.skill.model import Frontmatter


def shown_to_models(front: Frontmatter) -> bool:
    """Whether prompts, listings and tools for a model may name the skill."""
    return not front.hidden
