"""Activation: giving an agent the text of one skill, read at that moment so that edits are seen."""

from __future__ import annotations

from os import fspath
from typing import TYPE_CHECKING

from skillhall._internal.catalog.reader import bundle_of
from skillhall._internal.catalog.reader_reading import read_body
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.render.activation import render_activation

if TYPE_CHECKING:
    from os import PathLike

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.policy.profiles import Profile


def activate(skill: Skill, profile: Profile = LENIENT, directory: str | PathLike[str] = "") -> str:
    """The body of `skill`, where it stands, and the names of its other files.

    `directory` is what the model is told instead of the absolute path.
    Raises: SkillRejected, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    body = read_body(skill, profile)
    files = () if skill.is_flat else bundle_of(skill, profile.scan.published).resources()
    resources = [file.path.text for file in files]
    return render_activation(skill.name, fspath(directory) or skill.directory, body, resources)
