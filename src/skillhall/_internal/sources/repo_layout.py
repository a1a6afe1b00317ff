"""What a repository holds: which of its paths are skills, and where a name is looked for. Pure."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall.errors import NoSkillThere, SkillNotFound, SourceRejected

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.finding import Finding

_SHELF = "skills"  # where repositories of skills keep them
_WHAT_IT_HOLDS = "'skillhall add REPOSITORY --list' shows what it holds"


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
    if not wanted:
        if not (shown := shown_skills(paths)):
            raise NoSkillThere(text)
        return shown
    places = [wanted] if "/" in wanted else [f"{_SHELF}/{wanted}", wanted]
    for place in places:
        if below := shown_skills(paths, place):
            return below
    folders = skill_folders(path for path in paths if not _is_ignored(path))
    if "/" not in wanted and (named := _called(wanted, folders)):
        return _only_one(named, text)
    if any(path.startswith(f"{wanted}/") for path in paths):
        raise NoSkillThere(text)
    names = sorted({folder.rpartition("/")[2] for folder in folders if folder})
    raise SkillNotFound(wanted, get_close_matches(wanted, names), _WHAT_IT_HOLDS)


def shown_skills(paths: Iterable[str], base: str = "") -> list[str]:
    """The folders of the skills below `base` that a scan of the same files on disk finds.

    The rule is that of the profile `lenient`; its limit on the depth is for disks alone.
    """
    start = f"{base}/" if base else ""
    folders = (path.rpartition("/")[0] for path in paths if _is_skill_path(path, start))
    shown = LENIENT.scan.shown(dict.fromkeys(folders), base)
    return sorted(skill_folders(f"{folder}/{SKILL_MD}" if folder else SKILL_MD for folder in shown))


def _is_skill_path(path: str, start: str) -> bool:
    return path.startswith(start) and is_skill_md(path.rpartition("/")[2])


def _is_ignored(path: str) -> bool:
    """Whether some folder on the way is ignored by its name."""
    skip = LENIENT.scan._replace(skip_hidden=False).reason_to_skip
    return any(skip(name) is not None for name in path.split("/"))


def _called(name: str, folders: set[str]) -> list[str]:
    named = [folder for folder in folders if folder.rpartition("/")[2] == name]
    return [folder for folder in named if not folder.startswith(".")] or named


def _only_one(folders: list[str], text: str) -> list[str]:
    if len(folders) > 1:
        problem = f"several of its skills are called so: {', '.join(sorted(folders))}"
        raise SourceRejected("path", text, problem, "write the whole path of one")
    return folders
