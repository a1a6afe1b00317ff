"""Which skills models may see.

This is a separate module because every listing needs it, and `selection` imports much more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

SkillT = TypeVar("SkillT")


def is_visible_to_models(skill: object) -> bool:
    """Whether prompts, listings and tools for models may name the skill."""
    return not getattr(skill, "hidden", False)


def filter_visible(skills: Iterable[SkillT]) -> Iterator[SkillT]:
    """Return the skills that are not hidden from models, in order."""
    return filter(is_visible_to_models, skills)
