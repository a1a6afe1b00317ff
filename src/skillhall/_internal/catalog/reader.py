"""Reading a skill of the catalog: its body when it is activated, its files on demand."""

from __future__ import annotations

from dataclasses import replace
from os import fspath
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.readable_files import is_publishable
from skillhall._internal.render.activation import render_activation
from skillhall._internal.skill.bundle import RelativePath, SkillFile
from skillhall._internal.skill.frontmatter import (
    MAX_SKILL_MD_BYTES,
    FrontmatterBlock,
    find_frontmatter,
)
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.sources.folder.bundle_reader import (
    call_with_bundle,
    open_flat_bundle,
    read_file_at,
)
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
    data = read_skill_md(skill)
    folder = None if skill.is_flat else skill.directory.replace("\\", "/").rpartition("/")[2]
    return parse_skill(data, folder, profile.key_case)


def read_raw_body(skill: Skill) -> str:
    """What follows the frontmatter, and nothing else looked at: for a search over many skills.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    data = read_skill_md(skill)
    block = find_frontmatter(data)
    return data[block.body_start if isinstance(block, FrontmatterBlock) else 0 :].decode(
        "utf-8", "replace"
    )


def read_skill_md(skill: Skill) -> bytes:
    """The bytes of its SKILL.md. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
    if skill.real_file is not None:
        place = FolderHandle(skill.real_file.root)
        return read_file_at(
            place, RelativePath.parse(skill.real_file.relative_path), MAX_SKILL_MD_BYTES
        )
    return read_file_at(skill.folder_handle, RelativePath.parse(skill.file), MAX_SKILL_MD_BYTES)


def read_skill_file(skill: Skill, path: str | PathLike[str]) -> bytes:
    """One file of the skill; harmless spellings of its path are accepted.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    return read_relative_file(skill, RelativePath.parse_lenient(fspath(path)))


def read_relative_file(skill: Skill, path: RelativePath) -> bytes:
    """One file of the skill. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
    if path.text == skill.file:
        return read_skill_md(skill)
    if skill.is_flat:
        raise SkillFileNotFound(path.text)
    return read_file_at(skill.folder_handle, path)


def read_published_file(skill: Skill, path: RelativePath) -> bytes:
    """The same for others than the user of this machine: hidden files are not found."""
    if not is_publishable(path.text):
        raise SkillFileNotFound(path.text)
    return read_relative_file(skill, path)


def open_skill_bundle(skill: Skill, policy: ScanPolicy) -> Bundle:
    """The skill's files; a flat file has no others. Raises: SkillFileNotFound."""
    return with_bundle(skill, policy, lambda bundle: bundle)


def with_bundle(skill: Skill, policy: ScanPolicy, work: Callable[[Bundle], _T]) -> _T:
    """The result of `work` on the skill's files; all that it reads is of one version.

    Raises: SkillFileNotFound, and what `work` raises.
    """
    if skill.is_flat:
        return work(open_flat_bundle(skill.folder_handle, skill.file))
    if skill.real_file is None:
        return call_with_bundle(skill.folder_handle, policy, work)
    return call_with_bundle(
        skill.folder_handle, policy, lambda bundle: work(_with_linked_skill_md(skill, bundle))
    )


def _with_linked_skill_md(skill: Skill, bundle: Bundle) -> Bundle:
    """The bundle with the SKILL.md that is a link, which a bundle leaves out."""
    data = read_skill_md(skill)
    own = SkillFile(RelativePath.parse(skill.file), len(data), executable=False, read=lambda: data)
    files = {**bundle.files, skill.file: own}
    findings = tuple(found for found in bundle.findings if found.path != skill.file)
    return replace(bundle, files=dict(sorted(files.items())), findings=findings)


def activate(skill: Skill, profile: Profile = LENIENT, directory: str | PathLike[str] = "") -> str:
    """The body of `skill`, where it stands, and the names of its other files.

    `directory` is what the model is told instead of the absolute path.
    Raises: SkillRejected, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    body = read_accepted_body(skill, profile)
    files = (
        ()
        if skill.is_flat
        else open_skill_bundle(skill, profile.scan_policy.without_hidden_files).resources()
    )
    resources = [file.path.text for file in files]
    return render_activation(skill.name, fspath(directory) or skill.directory, body, resources)


def read_accepted_body(skill: Skill, profile: Profile) -> str:
    """The instructions, as they are at this moment. A catalog has seen only the frontmatter.

    Raises: SkillRejected, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    parsed = read_skill(skill, profile)
    judged = profile.load_policy.judge(parsed.findings)
    reasons = [one.finding.message for one in judged if one.effect is Effect.REJECT]
    if reasons:
        raise SkillRejected(skill.location, reasons)
    return parsed.body
