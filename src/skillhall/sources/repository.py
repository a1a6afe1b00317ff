"""What a repository holds: which of its paths are skills, and where a name is looked for. Pure."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from skillhall.errors import NoSkillThere, SkillNotFound, SourceRejected
from skillhall.skill.frontmatter import is_skill_md

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from skillhall.skill.bundle import Bundle
    from skillhall.skill.finding import Finding

_SHELF = "skills"  # where repositories of skills keep them
_WHAT_IT_HOLDS = "'skillhall add REPOSITORY --list' shows what it holds"
_NEVER = frozenset({".git", "node_modules", "__macosx"})


class Snapshot(NamedTuple):
    """The skills that were asked for, as they are in one commit."""

    bundles: tuple[Bundle, ...]
    commit: str
    ref: str = ""  # that has the commit; longer than the one of a page whose branch has slashes
    stale: str = ""  # why this is an older copy, if it is one


class Tree(NamedTuple):
    """The files of one folder as they are in one commit, or were at one moment."""

    files: Mapping[str, bytes]  # by path below the folder
    commit: str = ""
    findings: tuple[Finding, ...] = ()
    stale: str = ""  # why this is an older copy, if it is one
    seen: float = 0.0  # when the source was last known to be so, in seconds since 1970


def skill_folders(paths: Iterable[str]) -> set[str]:
    """The folders of skills; a SKILL.md below another one belongs to that one's skill."""
    found: set[str] = set()
    for path in sorted(paths, key=lambda path: path.count("/")):
        folder, _, file = path.rpartition("/")
        if is_skill_md(file) and folder_above(path, found) is None:
            found.add(folder)
    return found


def folder_above(path: str, folders: Collection[str]) -> str | None:
    """The one of `folders` that the path lies in; the nearest, if there are several."""
    while path:
        path = path.rpartition("/")[0]
        if path in folders:
            return path
    return None


def find_skills(paths: Collection[str], wanted: str, text: str) -> list[str]:
    """The folders of the skills at `wanted`, in order; all that are on show if it is empty.

    A single name is looked for in `skills/`, at the top, then anywhere. `text` names the source.
    Raises: NoSkillThere, SkillNotFound, SourceRejected.
    """
    folders = skill_folders(path for path in paths if not _NEVER & set(path.lower().split("/")))
    if not wanted:
        return _on_show(folders, text)
    places = [wanted] if "/" in wanted else [f"{_SHELF}/{wanted}", wanted]
    for place in places:
        if below := [folder for folder in folders if f"{folder}/".startswith(f"{place}/")]:
            return sorted(below)
    if "/" not in wanted and (named := _called(wanted, folders)):
        return _only_one(named, text)
    if any(path.startswith(f"{wanted}/") for path in paths):
        raise NoSkillThere(text)
    names = sorted({folder.rpartition("/")[2] for folder in folders if folder})
    raise SkillNotFound(wanted, get_close_matches(wanted, names), _WHAT_IT_HOLDS)


def _on_show(folders: set[str], text: str) -> list[str]:
    """All skills, but copies in agents' hidden folders only if there is nothing else."""
    shown = [folder for folder in folders if not _is_hidden(folder)]
    if not folders:
        raise NoSkillThere(text)
    return sorted(shown or folders)


def _is_hidden(folder: str) -> bool:
    # skills/.curated and skills/.system are shelves, .claude/skills is somebody's installation.
    return folder.startswith(".")


def _called(name: str, folders: set[str]) -> list[str]:
    named = [folder for folder in folders if folder.rpartition("/")[2] == name]
    return [folder for folder in named if not _is_hidden(folder)] or named


def _only_one(folders: list[str], text: str) -> list[str]:
    if len(folders) > 1:
        problem = f"several of its skills are called so: {', '.join(sorted(folders))}"
        raise SourceRejected("path", text, problem, "write the whole path of one")
    return folders
