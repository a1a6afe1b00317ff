"""Reading a skill's body for a model, if the whole file is still one that the profile takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.reader import read_skill
from skillhall._internal.policy.effects import Effect
from skillhall.errors import SkillRejected

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.policy.profiles import Profile


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
