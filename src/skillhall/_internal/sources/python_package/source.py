"""Skills of installed Python packages, in `.agents/skills` of the package's folder.

No package is imported, because that would run its code. A distribution's metadata only tells where
to search; files are read below the package's folder, by handles.
"""

from __future__ import annotations

import os
import re
import sys
from glob import escape, glob
from importlib.metadata import Distribution, distributions
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import EntryKind, FolderHandle, folder_at, open_root, read_file
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall.errors import NoSkillThere, NotAFile, PackageNotInstalled, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.python_package.package_ref import PackageRef

SKILLS_FOLDER = ".agents/skills"
_NAME = r"[^\W\d]\w*"  # a Python identifier
_RECORD_PATTERN = re.compile(rf"((?:{_NAME}/)+?){re.escape(SKILLS_FOLDER)}/[^/]+/[^/]+")
_IMPORT_NAME = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_MAX_PTH = 64 * 1024  # bytes; a normal .pth file has one or two lines
_EDITABLE_HINT = "it is installed from its source folder: name that folder instead"
_LOCATION_HINT = f"a package has its skills in its folder, in {SKILLS_FOLDER}/<name>/SKILL.md"


class PackageSkills(NamedTuple):
    """Skills of a package, and the version of its distribution or ""."""

    bundles: tuple[Bundle, ...]
    version: str


def package_search_paths(settings: Settings) -> list[str]:
    """Return where to search packages: the active environment, then `sys.path`."""
    environment = settings.variables.get("VIRTUAL_ENV", "")
    folders = _site_packages(environment) if os.path.isabs(environment) else []
    named = [path for folder in folders for path in (folder, *_pth_entries(folder))]
    running = (path for path in sys.path if os.path.isabs(path) and os.path.isdir(path))
    return list(dict.fromkeys([*named, *running]))


def _site_packages(environment: str) -> list[str]:
    pattern = os.path.join(escape(environment), "lib", "python3*", "site-packages")
    windows = os.path.join(environment, "Lib", "site-packages")
    folders = sorted(glob(pattern)) or [windows]
    return [path for path in folders if os.path.isdir(path)]


def _pth_entries(folder: str) -> Iterator[str]:
    """Yield the folders that `.pth` files add; their lines of code are not run."""
    for name in sorted(os.listdir(folder)):
        for line in _pth_lines(folder, name) if name.endswith(".pth") else ():
            path = os.path.join(folder, line)
            if not line.startswith(("#", "import ", "import\t")) and os.path.isdir(path):
                yield os.path.normpath(path)


def _pth_lines(folder: str, name: str) -> list[str]:
    opened = open_root(folder)
    try:
        text = read_file(opened, name, _MAX_PTH).decode("utf-8")
    except (OSError, NotAFile, TooLarge, UnicodeDecodeError):
        return []
    finally:
        opened.close()
    return [line.strip() for line in text.splitlines() if line.strip() and "\0" not in line]


def read_package(reference: PackageRef, search_paths: Sequence[str]) -> PackageSkills:
    """Read the skills of a package, named by its distribution or import name.

    Raises: PackageNotInstalled, NoSkillThere.
    """
    distribution = _find_distribution(reference.package, search_paths)
    folders = _find_skill_folders(reference.package, distribution, search_paths)
    bundles = tuple(bundle for folder in folders for bundle in _read_bundles(folder))
    if bundles:
        return PackageSkills(bundles, _read_version(distribution))
    if distribution is None and not any(_find_package_folder(reference.package, search_paths)):
        raise PackageNotInstalled(reference.package)
    is_editable = distribution is not None and _is_editable(distribution)
    raise NoSkillThere(reference.text, _EDITABLE_HINT if is_editable else _LOCATION_HINT)


def _find_distribution(package: str, search_paths: Sequence[str]) -> Distribution | None:
    # Names are compared by the rules of PEP 503: `My.Package` equals `my-package`.
    return next(iter(distributions(name=package, path=list(search_paths))), None)


def _read_version(distribution: Distribution | None) -> str:
    try:
        return str(distribution.metadata["Version"] or "") if distribution is not None else ""
    except (KeyError, TypeError, ValueError, OSError):  # depends on the version of Python
        return ""


def _is_editable(distribution: Distribution) -> bool:
    return '"editable": true' in re.sub(
        r"\s*:\s*", ": ", _read_metadata_file(distribution, "direct_url.json")
    )


def _read_metadata_file(distribution: Distribution, name: str) -> str:
    try:
        return distribution.read_text(name) or ""
    except (OSError, ValueError):
        return ""


def _find_skill_folders(
    package: str, distribution: Distribution | None, search_paths: Sequence[str]
) -> Iterator[FolderHandle]:
    """Return the skill folders of the package, without duplicates."""
    folders: dict[FolderHandle, None] = {}
    if distribution is not None:
        site = os.path.abspath(str(distribution.locate_file("")))
        for folder in sorted(_recorded_packages(distribution)):
            folders |= dict.fromkeys(_locate_skill_folder([site, *search_paths], folder))
    if not folders:
        folders |= dict.fromkeys(_find_package_folder(package, search_paths, SKILLS_FOLDER))
    return iter(folders)


def _recorded_packages(distribution: Distribution) -> set[str]:
    """Return the package folders that a distribution's metadata names."""
    lines = _read_metadata_file(distribution, "RECORD").splitlines()
    recorded = (_RECORD_PATTERN.fullmatch(line.partition(",")[0]) for line in lines)
    named = {match[1].rstrip("/") for match in recorded if match}
    top = _read_metadata_file(distribution, "top_level.txt").split()
    return named or {name for name in top if re.fullmatch(_NAME, name)}


def _locate_skill_folder(roots: Sequence[str], folder: str) -> list[FolderHandle]:
    """Return the skill folder in the first root that contains the package."""
    for root in roots:
        if _is_folder(FolderHandle(root, folder)):
            return [FolderHandle(root, f"{folder}/{SKILLS_FOLDER}")]
    return []


def _find_package_folder(
    package: str, search_paths: Sequence[str], below: str = ""
) -> Iterator[FolderHandle]:
    """Yield the folder of the package with this import name, from the first path."""
    spellings = dict.fromkeys((package, re.sub(r"[-.]+", "_", package).lower()))
    for name in spellings:
        folder = name.replace(".", "/")
        for root in search_paths if _IMPORT_NAME.fullmatch(name) else ():
            if _is_folder(FolderHandle(root, folder)):
                yield FolderHandle(root, f"{folder}/{below}" if below else folder)
                return


def _is_folder(location: FolderHandle) -> bool:
    try:
        with folder_at(location):
            return True
    except OSError:
        return False


def _read_bundles(location: FolderHandle) -> Iterator[Bundle]:
    try:
        with folder_at(location) as folder:
            names = sorted(name for name, kind in folder.list_entries() if kind is EntryKind.FOLDER)
    except OSError:
        return
    for name in names:
        bundle = open_bundle(location.child(name), LENIENT.scan_policy)
        if any(is_skill_md(path) for path in bundle.files):
            yield Bundle(name, bundle.files, bundle.findings)
