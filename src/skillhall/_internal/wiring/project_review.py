"""Builds the review of the skills of a project."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from skillhall._internal.agents.project_gate import open_trust_gate
from skillhall._internal.authoring.skill_review import SkillReview
from skillhall._internal.policy.profiles import LENIENT
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings


def open_review(settings: Settings, via: str) -> SkillReview:
    """Return the review of the skills in the working directory, by the command `via`."""
    gate = open_trust_gate(settings, LENIENT.trust_policy)
    user = os.path.basename(settings.home)  # noqa: PTH119 - pathlib takes 5 ms to import
    return SkillReview(gate, settings.data_directory, user, via)


def approve_own_skill(settings: Settings, name: str, folder: str, via: str) -> None:
    """Record that the user is writing a skill, which then needs no approval.

    Failures are ignored: the user is asked about the skill later.
    """
    with suppress(SkillhallError, OSError):
        open_review(settings, via).approve_own(name, folder)
