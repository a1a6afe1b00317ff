"""Layout of repositories and archives: finding skills in lists of paths. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.hints import find_close_names
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.bundle import VERSION_CONTROL_FOLDERS, fold_name
from skillhall._internal.skill.frontmatter_locator import SKILL_MD, is_skill_md
from skillhall.errors import NoSkillThere, SkillNotInSource, SourceRejected

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.finding import Finding

_SKILLS_FOLDER = "skills"  # the usual folder of skills in a repository
_MACOS_NAMES = frozenset({"__macosx", ".ds_store"})


class RepositorySkills(NamedTuple):
    """Requested skills in a repository at one commit."""

    bundles: tuple[Bundle, ...]
    commit: str
    ref: str = ""  # of the commit; may be longer than the reference's, for a branch with slashes
    stale: str = ""  # why a cached version is served, if one is


class FileTree(NamedTuple):
    """Files in one folder, at one commit or point in time."""

    files: Mapping[str, bytes]  # by path below the folder
    commit: str = ""
    findings: tuple[Finding, ...] = ()
    stale: str = ""  # why a cached version is served, if one is
    checked_at: float = 0.0  # Unix time when the source was last checked


def find_skill_folders(paths: Iterable[str]) -> set[str]:
    """Return the skill folders; a nested SKILL.md belongs to the outer skill."""
    folders: set[str] = set()
    for path in sorted(paths, key=lambda path: path.count("/")):
        folder, _, file = path.rpartition("/")
        if is_skill_md(file) and find_enclosing_folder(path, folders) is None:
            folders.add(folder)
    return folders


def find_enclosing_folder(path: str, folders: Collection[str]) -> str | None:
    """Return the innermost of `folders` that contains the path, or `None`."""
    while path:
        path = path.rpartition("/")[0]
        if path in folders:
            return path
    return None


def is_macos_metadata(path: str) -> bool:
    """Whether a path is metadata that macOS adds to archives."""
    return any(part.startswith("._") or part.lower() in _MACOS_NAMES for part in path.split("/"))


def find_version_control_folder(path: str) -> str | None:
    """Return the version control folder that contains the file, or `None`."""
    parts = path.split("/")
    for count, part in enumerate(parts, 1):
        if fold_name(part) in VERSION_CONTROL_FOLDERS:
            return "/".join(parts[:count])
    return None


def find_skills(paths: Collection[str], requested_path: str, source_text: str) -> list[str]:
    """Return the sorted folders of the skills at `requested_path`.

    `""` means all visible skills. A single name is looked up in `skills/`, then at the root, then
    everywhere.
    Raises: NoSkillThere, SkillNotFound, SourceRejected.
    """
    if not requested_path:
        if not (visible := find_visible_skills(paths)):
            raise NoSkillThere(source_text)
        return visible
    is_name = "/" not in requested_path
    preferred = [f"{_SKILLS_FOLDER}/{requested_path}"] if is_name else []
    for root in [*preferred, requested_path]:
        if visible := find_visible_skills(paths, root):
            return visible
    skip = LENIENT.scan_policy._replace(skip_hidden=False).reason_to_skip
    folders = find_skill_folders(
        path for path in paths if all(skip(name) is None for name in path.split("/"))
    )
    named = [f for f in folders if is_name and f.rpartition("/")[2] == requested_path]
    named = [folder for folder in named if not folder.startswith(".")] or named
    if len(named) > 1:
        problem = f"several skills in it have this name: {', '.join(sorted(named))}"
        raise SourceRejected("path", source_text, problem, "use the full path of one of them")
    if named:
        return named
    if any(path.startswith(f"{requested_path}/") for path in paths):
        raise NoSkillThere(source_text)
    names = sorted({folder.rpartition("/")[2] for folder in folders if folder})
    raise SkillNotInSource(requested_path, find_close_names(requested_path, names))


def find_visible_skills(paths: Iterable[str], root: str = "") -> list[str]:
    """Return the skill folders below `root` that a scan would find on disk, sorted.

    The rules are those of the lenient profile, without its depth limit.
    """
    prefix = f"{root}/" if root else ""
    split_paths = (path.rpartition("/") for path in paths if path.startswith(prefix))
    folders = (folder for folder, _, file in split_paths if is_skill_md(file))
    visible = LENIENT.scan_policy.filter_folders(dict.fromkeys(folders), root)
    return sorted(
        find_skill_folders(f"{folder}/{SKILL_MD}" if folder else SKILL_MD for folder in visible)
    )
