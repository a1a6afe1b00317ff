"""What a repository holds: which of its paths are skills, and where a name is looked for. Pure."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall.errors import NoSkillThere, SkillNotInSource, SourceRejected

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.finding import Finding

_SKILLS_FOLDER = "skills"  # where repositories of skills keep them


class RepositorySkills(NamedTuple):
    """The skills that were asked for, as they are in one commit."""

    bundles: tuple[Bundle, ...]
    commit: str
    ref: str = ""  # that has the commit; longer than the one of a page whose branch has slashes
    stale: str = ""  # why this is an older copy, if it is one


class FileTree(NamedTuple):
    """The files of one folder as they are in one commit, or were at one moment."""

    files: Mapping[str, bytes]  # by path below the folder
    commit: str = ""
    findings: tuple[Finding, ...] = ()
    stale: str = ""  # why this is an older copy, if it is one
    checked_at: float = 0.0  # when the source was last known to be so, in seconds since 1970


def find_skill_folders(paths: Iterable[str]) -> set[str]:
    """The folders of skills; a SKILL.md below another one belongs to that one's skill."""
    found: set[str] = set()
    for path in sorted(paths, key=lambda path: path.count("/")):
        folder, _, file = path.rpartition("/")
        if is_skill_md(file) and find_enclosing_folder(path, found) is None:
            found.add(folder)
    return found


def find_enclosing_folder(path: str, folders: Collection[str]) -> str | None:
    """The one of `folders` that the path lies in; the nearest, if there are several."""
    while path:
        path = path.rpartition("/")[0]
        if path in folders:
            return path
    return None


def find_skills(paths: Collection[str], requested_path: str, source_text: str) -> list[str]:
    """The folders of the skills at `wanted`, in order; all that are on show if it is empty.

    A single name is looked for in `skills/`, at the top, then anywhere. `text` names the source.
    Raises: NoSkillThere, SkillNotFound, SourceRejected.
    """
    if not requested_path:
        if not (shown := find_visible_skills(paths)):
            raise NoSkillThere(source_text)
        return shown
    places = (
        [requested_path]
        if "/" in requested_path
        else [f"{_SKILLS_FOLDER}/{requested_path}", requested_path]
    )
    for place in places:
        if below := find_visible_skills(paths, place):
            return below
    folders = find_skill_folders(path for path in paths if not _is_ignored(path))
    if "/" not in requested_path and (named := _folders_named(requested_path, folders)):
        return _require_single(named, source_text)
    if any(path.startswith(f"{requested_path}/") for path in paths):
        raise NoSkillThere(source_text)
    names = sorted({folder.rpartition("/")[2] for folder in folders if folder})
    raise SkillNotInSource(requested_path, get_close_matches(requested_path, names))


def find_visible_skills(paths: Iterable[str], root: str = "") -> list[str]:
    """The folders of the skills below `base` that a scan of the same files on disk finds.

    The rule is that of the profile `lenient`; its limit on the depth is for disks alone.
    """
    start = f"{root}/" if root else ""
    folders = (path.rpartition("/")[0] for path in paths if _is_skill_path(path, start))
    shown = LENIENT.scan_policy.filter_folders(dict.fromkeys(folders), root)
    return sorted(
        find_skill_folders(f"{folder}/{SKILL_MD}" if folder else SKILL_MD for folder in shown)
    )


def _is_skill_path(path: str, start: str) -> bool:
    return path.startswith(start) and is_skill_md(path.rpartition("/")[2])


def _is_ignored(path: str) -> bool:
    """Whether some folder on the way is ignored by its name."""
    skip = LENIENT.scan_policy._replace(skip_hidden=False).reason_to_skip
    return any(skip(name) is not None for name in path.split("/"))


def _folders_named(name: str, folders: set[str]) -> list[str]:
    named = [folder for folder in folders if folder.rpartition("/")[2] == name]
    return [folder for folder in named if not folder.startswith(".")] or named


def _require_single(folders: list[str], source_text: str) -> list[str]:
    if len(folders) > 1:
        problem = f"several of its skills are called so: {', '.join(sorted(folders))}"
        raise SourceRejected("path", source_text, problem, "write the whole path of one")
    return folders
