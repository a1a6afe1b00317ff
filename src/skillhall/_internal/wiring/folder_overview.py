"""What is in the working directory: skills, installed skills and a config."""

from __future__ import annotations

import os
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOverview:
    """What is in a folder. Paths are relative to it."""

    folder: str
    is_skill: bool  # whether it has a SKILL.md
    has_evals: bool  # whether that skill has evals
    skills: dict[str, int]  # the number of skills by the folder that contains them
    user_skills: int  # in the folders of the home directory
    rejected: tuple[str, ...]  # paths of skills that agents cannot load
    installed: int  # entries in the lock file
    missing: int  # of them, those that are not installed
    lock_problem: str  # why the lock file cannot be read; "" if it can
    config: str  # name of the config file; "" if there is none


def inspect_folder(settings: Settings) -> FolderOverview:
    """Inspect the working directory. Nothing outside of the usual skill folders is searched."""
    folder = Path(settings.working_directory)
    try:
        is_skill = any(is_skill_md(path.name) for path in folder.iterdir())
    except OSError:
        is_skill = False
    roots = [path for path, _ in LENIENT.roots]
    own = "." if is_skill else _SKILLS_FOLDER
    if (folder / own).is_dir():
        roots.append(own)
    catalog = load_catalog(roots, settings=settings)
    skills: dict[str, int] = {}
    user_skills = 0
    for skill in (*catalog.skills, *(shadowed.skill for shadowed in catalog.shadowed)):
        root = catalog.roots[skill.root_number].path
        name = os.path.relpath(root, folder).replace(os.sep, "/")
        if name.startswith("../"):
            user_skills += 1
        else:
            skills[name] = skills.get(name, 0) + 1
    rejected = (os.path.relpath(one.location, folder) for one in catalog.rejected)
    project = Project.from_settings(settings)
    installed, missing, lock_problem = 0, 0, ""
    try:
        entries = project.read_lock().entries
        installed = len(entries)
        missing = sum(not Path(project.path(key)).is_dir() for key in entries)
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
