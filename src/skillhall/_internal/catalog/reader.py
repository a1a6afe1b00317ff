"""Reading a skill of the catalog: its body when it is activated, its files on demand."""

from __future__ import annotations

from dataclasses import replace
from os import fspath
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.fs.handles import Place
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.readable_files import is_published
from skillhall._internal.render.activation import render_activation
from skillhall._internal.skill.bundle import RelativePath, SkillFile
from skillhall._internal.skill.frontmatter import MAX_SKILL_MD, Block, find_block
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.sources.folder.bundle_reader import open_flat, read_in_place, use_bundle
from skillhall.errors import SkillFileNotFound, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.policy.scan_rules import ScanPolicy
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.parsed import ParsedSkill


_T = TypeVar("_T")


def read_skill(skill: Skill, profile: Profile = LENIENT) -> ParsedSkill:
    """The whole SKILL.md as it is at this moment, so that edits are seen.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    data = read_own_file(skill)
    folder = None if skill.is_flat else skill.directory.replace("\\", "/").rpartition("/")[2]
    return parse_skill(data, folder, profile.keys)


def read_raw_body(skill: Skill) -> str:
    """What follows the frontmatter, and nothing else looked at: for a search over many skills.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    data = read_own_file(skill)
    block = find_block(data)
    return data[block.body if isinstance(block, Block) else 0 :].decode("utf-8", "replace")


def read_own_file(skill: Skill) -> bytes:
    """The bytes of its SKILL.md. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
    if skill.real_file is not None:
        place = Place(skill.real_file.root)
        return read_in_place(place, RelativePath.parse(skill.real_file.below), MAX_SKILL_MD)
    return read_in_place(skill.place, RelativePath.parse(skill.file), MAX_SKILL_MD)


def read_skill_file(skill: Skill, path: str | PathLike[str]) -> bytes:
    """One file of the skill; harmless spellings of its path are accepted.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    return read_exact_file(skill, RelativePath.normalized(fspath(path)))


def read_exact_file(skill: Skill, path: RelativePath) -> bytes:
    """One file of the skill. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
    if path.text == skill.file:
        return read_own_file(skill)
    if skill.is_flat:
        raise SkillFileNotFound(path.text)
    return read_in_place(skill.place, path)


def read_published_file(skill: Skill, path: RelativePath) -> bytes:
    """The same for others than the user of this machine: hidden files are not found."""
    if not is_published(path.text):
        raise SkillFileNotFound(path.text)
    return read_exact_file(skill, path)


def bundle_of(skill: Skill, policy: ScanPolicy) -> Bundle:
    """The skill's files; a flat file has no others. Raises: SkillFileNotFound."""
    return with_bundle(skill, policy, lambda bundle: bundle)


def with_bundle(skill: Skill, policy: ScanPolicy, work: Callable[[Bundle], _T]) -> _T:
    """The result of `work` on the skill's files; all that it reads is of one version.

    Raises: SkillFileNotFound, and what `work` raises.
    """
    if skill.is_flat:
        return work(open_flat(skill.place, skill.file))
    if skill.real_file is None:
        return use_bundle(skill.place, policy, work)
    return use_bundle(skill.place, policy, lambda bundle: work(_with_own_file(skill, bundle)))


def _with_own_file(skill: Skill, bundle: Bundle) -> Bundle:
    """The bundle with the SKILL.md that is a link, which a bundle leaves out."""
    data = read_own_file(skill)
    own = SkillFile(RelativePath.parse(skill.file), len(data), executable=False, read=lambda: data)
    files = {**bundle.files, skill.file: own}
    findings = tuple(found for found in bundle.findings if found.path != skill.file)
    return replace(bundle, files=dict(sorted(files.items())), findings=findings)


def activate(skill: Skill, profile: Profile = LENIENT, directory: str | PathLike[str] = "") -> str:
    """The body of `skill`, where it stands, and the names of its other files.

    `directory` is what the model is told instead of the absolute path.
    Raises: SkillRejected, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    body = read_body(skill, profile)
    files = () if skill.is_flat else bundle_of(skill, profile.scan.published).resources()
    resources = [file.path.text for file in files]
    return render_activation(skill.name, fspath(directory) or skill.directory, body, resources)


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
