"""Writes drafts of eval files into the folder of a skill."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.evals.eval_check import EVALS_PATH, TRIGGER_PATHS
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall.errors import Conflict, NotASkill

if TYPE_CHECKING:
    from skillhall._internal.skill.evals.eval_draft import EvalDraft
    from skillhall._internal.skill.parsed import ParsedSkill


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """The folder of one skill, its name and its parsed SKILL.md."""

    path: str
    name: str
    parsed: ParsedSkill


def read_skill_folder(path: str) -> SkillFolder:
    """Read the SKILL.md in a folder. Raises: NotASkill, SkillFileNotFound, NotAFile, TooLarge."""
    path = os.path.abspath(path)
    bundle = open_bundle(FolderHandle(path), LENIENT.scan_policy)
    file = min(filter(is_skill_md, bundle.files), default=None)  # SKILL.md comes before skill.md
    if file is None:
        raise NotASkill(path)
    parsed = parse_skill(bundle.files[file].read(), os.path.basename(path))
    return SkillFolder(path, parsed.frontmatter.name or os.path.basename(path), parsed)


def write_eval_files(folder: SkillFolder, draft: EvalDraft, *, force: bool) -> tuple[str, ...]:
    """Write both files and return their paths.

    With `force`, they replace existing ones.
    Raises: Conflict if one exists and `force` is not set, NotAFile for a link, OSError.
    """
    contents = {EVALS_PATH: draft.evals, TRIGGER_PATHS[0]: draft.triggers}
    with WritableFolder(folder.path) as root, root.open_folder("evals", create=True) as evals:
        names = {path: path.rpartition("/")[2] for path in contents}
        for path, name in names.items():
            if not force and evals.entry_kind(name) is not None:
                raise Conflict(os.path.join(folder.path, path))
        for path, data in contents.items():
            evals.write_file(names[path], data)
    return tuple(os.path.join(folder.path, path) for path in contents)
