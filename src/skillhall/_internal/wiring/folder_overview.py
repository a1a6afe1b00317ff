"""What is in the working directory: skills, installed skills and a config."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.config.agent_config import find_config
from skillhall._internal.installer.project import Project
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.evals.eval_check import EVALS_PATH
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.wiring.catalog import load_catalog
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings

_SKILLS_FOLDER = "skills"  # where repositories of skills have them
_MAX_ENTRIES = 1000  # of the folder, in which skills are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOverview:
    """What is in a folder. Paths are relative to it."""

    folder: str
    is_skill: bool  # whether it has a SKILL.md
    has_evals: bool  # whether that skill has evals
    skills: dict[str, int]  # the number of skills by the folder that contains them, such as "."
    user_skills: int  # in the folders of the home directory
    rejected: tuple[str, ...]  # paths of skills that agents cannot load
    installed: int  # entries in the lock file
    missing: int  # of them, those that are not installed
    lock_problem: str  # why the lock file cannot be read; "" if it can
    config: str  # name of the config file; "" if there is none


def inspect_folder(settings: Settings) -> FolderOverview:
    """Inspect the working directory: the usual skill folders, and its direct subfolders.

    A deeper search would take long in a home folder.
    """
    folder = Path(settings.working_directory)
    try:
        entries = sorted(islice(folder.iterdir(), _MAX_ENTRIES))
    except OSError:
        entries = []
    is_skill = any(is_skill_md(path.name) for path in entries)
    roots = [path for path, _ in LENIENT.roots]
    subfolders: list[str] = []
    if is_skill:
        roots.append(".")
    else:
        visible = [path for path in entries if not path.name.startswith(".")]
        subfolders = [str(path) for path in visible if (path / "SKILL.md").is_file()]
        roots += subfolders
        if (folder / _SKILLS_FOLDER).is_dir():
            roots.append(_SKILLS_FOLDER)
    catalog = load_catalog(roots, settings=settings)
    skills: dict[str, int] = {}
    user_skills = 0
    for skill in (*catalog.skills, *(shadowed.skill for shadowed in catalog.shadowed)):
        root = catalog.roots[skill.root_number].path
        is_direct = root in subfolders
        name = "." if is_direct else os.path.relpath(root, folder).replace(os.sep, "/")
        if name.startswith("../"):
            user_skills += 1
        else:
            skills[name] = skills.get(name, 0) + 1
    rejected = (os.path.relpath(one.location, folder) for one in catalog.rejected)
    project = Project.from_settings(settings)
    installed, missing, lock_problem = 0, 0, ""
    try:
        locked = project.read_lock().entries
        installed = len(locked)
        missing = sum(not Path(project.path(key)).is_dir() for key in locked)
    except (SkillhallError, OSError) as error:
        lock_problem = str(error)
    config = find_config(folder)
    return FolderOverview(
        folder=str(folder),
        is_skill=is_skill,
        has_evals=is_skill and (folder / EVALS_PATH).is_file(),
        skills=skills,
        user_skills=user_skills,
        rejected=tuple(sorted(path for path in rejected if not path.startswith(".."))),
        installed=installed,
        missing=missing,
        lock_problem=lock_problem,
        config=Path(config).name if config else "",
    )
