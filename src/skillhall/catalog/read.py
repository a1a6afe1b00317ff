"""Reading a skill of the catalog: its body when it is activated, its files on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall.skill.bundle import RelativePath
from skillhall.skill.parse import MAX_SKILL_MD, parse_skill
from skillhall.sources.bundles import open_bundle, read_in_place

if TYPE_CHECKING:
    from skillhall.catalog.catalog import Skill
    from skillhall.policy.scanning import ScanPolicy
    from skillhall.skill.bundle import Bundle
    from skillhall.skill.model import KeyCase, ParsedSkill


def read_skill(skill: Skill, keys: KeyCase) -> ParsedSkill:
    """The whole SKILL.md as it is at this moment, so that edits are seen.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    data = read_in_place(skill.place, RelativePath.parse(skill.file), MAX_SKILL_MD)
    folder = None if skill.is_flat else skill.directory.replace("\\", "/").rpartition("/")[2]
    return parse_skill(data, folder, keys)


def read_skill_file(skill: Skill, path: str) -> bytes:
    """One file of the skill. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
    return read_in_place(skill.place, RelativePath.parse(path))


def bundle_of(skill: Skill, policy: ScanPolicy) -> Bundle:
    """The skill's files. Raises: SkillFileNotFound."""
    return open_bundle(skill.place, policy)
