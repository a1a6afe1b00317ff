"""Reading a skill's body for a model, if the whole file is still one that the profile takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall.catalog.read import read_skill
from skillhall.errors import SkillRejected
from skillhall.policy.loading import Effect

if TYPE_CHECKING:
    from skillhall.catalog.catalog import Skill
    from skillhall.policy.profiles import Profile


def read_body(skill: Skill, profile: Profile) -> str:
    """The instructions, as they are at this moment. A catalog has seen only the frontmatter.

    Raises: SkillRejected, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    parsed = read_skill(skill, profile)
    judged = profile.load.judge(parsed.findings)
    reasons = [one.finding.message for one in judged if one.effect is Effect.REJECT]
    if reasons:
        raise SkillRejected(skill.location, reasons)
    return parsed.body
