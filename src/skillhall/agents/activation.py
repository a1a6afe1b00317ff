"""Activation: giving an agent the text of one skill, read at that moment so that edits are seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall.catalog.read import bundle_of, read_skill
from skillhall.policy.profiles import LENIENT
from skillhall.render.activation import render_activation

if TYPE_CHECKING:
    from skillhall.catalog.catalog import Skill
    from skillhall.policy.profiles import Profile


def activate(skill: Skill, profile: Profile = LENIENT) -> str:
    """The body of `skill`, where it stands, and the names of its other files.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    body = read_skill(skill, profile.keys).body
    resources: list[str] = []
    if not skill.is_flat:
        resources = [file.path.text for file in bundle_of(skill, profile.scan).resources()]
    return render_activation(skill.name, skill.directory, body, resources)
