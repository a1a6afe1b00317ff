"""Skills in installed Python packages, named `python:package`.

They are in `.agents/skills` in the package's folder. No package is imported, because that would run
its code. A distribution's metadata only says where to search; files are read through handles, below
the package's folder.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from glob import escape, glob
from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import (
    EntryKind,
    FolderHandle,
    open_folder_at,
    open_root,
    read_file,
)
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.sources.base import OpenedSource, Ref
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall.errors import NoSkillThere, NotAFile, PackageNotInstalled, SourceRejected, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.metadata import Distribution

    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.source_text import SourceText

SKILLS_FOLDER = ".agents/skills"
_PREFIX = "python:"
_PACKAGE = re.compile(r"[A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*")
_NAME = r"[^\W\d]\w*"  # a Python identifier
_RECORD_PATTERN = re.compile(rf"((?:{_NAME}/)+?){re.escape(SKILLS_FOLDER)}/[^/]+/[^/]+")
_IMPORT_NAME = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_MAX_PTH = 64 * 1024  # bytes; a normal .pth file has one or two lines
_EDITABLE_HINT = "it is an editable install: use its source folder as the source instead"
_LOCATION_HINT = f"the skills of a package are in its folder, at {SKILLS_FOLDER}/<name>/SKILL.md"


@dataclass(frozen=True, slots=True)
class PackageRef(Ref):
    """Installed Python package with skills."""

    left_out_hidden_files = True
    package: str

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return f"{_PREFIX}{self.package}"

    def open(self, context: SourceContext) -> OpenedSource:
        """Find the package and its skills. Raises: PackageNotInstalled, NoSkillThere."""
        return OpenedSource(self, read_package(self, package_search_paths(context.settings)))


def parse_package(source: SourceText) -> PackageRef | None:
    """Parse the name of a package. Raises: SourceRejected."""
    if not source.text.startswith(_PREFIX):
        return None
    name = source.text.removeprefix(_PREFIX)
    if not _PACKAGE.fullmatch(name):
        raise SourceRejected("path", source.text, "it is not a valid Python package name")
    return PackageRef(name)


def package_search_paths(settings: Settings) -> list[str]:
    """Return the folders to search for packages.

    Those of the active virtual environment come first, then `sys.path`.
    """
    environment = settings.variables.get("VIRTUAL_ENV", "")
    folders: list[str] = []
    if os.path.isabs(environment):
        pattern = os.path.join(escape(environment), "lib", "python3*", "site-packages")
        folders = sorted(glob(pattern)) or [os.path.join(environment, "Lib", "site-packages")]
    folders = [path for path in folders if os.path.isdir(path)]
    named = [path for folder in folders for path in (folder, *_pth_entries(folder))]
    running = (path for path in sys.path if os.path.isabs(path) and os.path.isdir(path))
    return list(dict.fromkeys([*named, *running]))


def _pth_entries(folder: str) -> Iterator[str]:
    """Yield the folders that `.pth` files add to the path; no code in them is run."""
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".pth"):
            continue
        try:
            with open_root(folder) as opened:
                text = read_file(opened, name, _MAX_PTH).decode("utf-8")
        except (OSError, NotAFile, TooLarge, UnicodeDecodeError):
            continue
        for line in filter(None, map(str.strip, text.splitlines())):
            path = os.path.join(folder, line)
            is_path = "\0" not in line and not line.startswith(("#", "import ", "import\t"))
            if is_path and os.path.isdir(path):
                yield os.path.normpath(path)


def read_package(reference: PackageRef, search_paths: Sequence[str]) -> tuple[Bundle, ...]:
    """Read the skills in a package, given its distribution or import name.

    Raises: PackageNotInstalled, NoSkillThere.
    """
    # Every command that reads a lock file imports this module: see `Ref`. This import takes 24 ms.
    from importlib.metadata import distributions  # noqa: PLC0415

    package = reference.package
    # Names are compared by the rules of PEP 503: `My.Package` equals `my-package`.
    distribution = next(iter(distributions(name=package, path=list(search_paths))), None)
    folders = _find_skill_folders(package, distribution, search_paths)
    bundles = tuple(bundle for folder in folders for bundle in _read_bundles(folder))
    if bundles:
        return bundles
    if distribution is None and not any(_find_package_folder(package, search_paths)):
        raise PackageNotInstalled(package)
    origin = _read_metadata_file(distribution, "direct_url.json") if distribution else ""
    is_editable = '"editable": true' in re.sub(r"\s*:\s*", ": ", origin)
    raise NoSkillThere(reference.text, _EDITABLE_HINT if is_editable else _LOCATION_HINT)


def _read_metadata_file(distribution: Distribution, name: str) -> str:
    try:
        return distribution.read_text(name) or ""
    except (OSError, ValueError):
        return ""


def _find_skill_folders(
    package: str, distribution: Distribution | None, search_paths: Sequence[str]
) -> list[FolderHandle]:
    """Return the folders that contain skills of the package, without duplicates."""
    folders: dict[FolderHandle, None] = {}
    if distribution is not None:
        lines = _read_metadata_file(distribution, "RECORD").splitlines()
        recorded = (_RECORD_PATTERN.fullmatch(line.partition(",")[0]) for line in lines)
        names = {match[1].rstrip("/") for match in recorded if match}
        if not names:
            top = _read_metadata_file(distribution, "top_level.txt").split()
            names = {name for name in top if re.fullmatch(_NAME, name)}
        roots = [os.path.abspath(str(distribution.locate_file(""))), *search_paths]
        for name in sorted(names):
            root = next((root for root in roots if _is_folder(FolderHandle(root, name))), None)
            if root is not None:
                folders[FolderHandle(root, f"{name}/{SKILLS_FOLDER}")] = None
    return list(folders) or list(_find_package_folder(package, search_paths, SKILLS_FOLDER))


def _find_package_folder(
    package: str, search_paths: Sequence[str], below: str = ""
) -> Iterator[FolderHandle]:
    """Yield the folder of the package with this import name, or nothing.

    The first search path that has it wins. `below` is a path to append to the folder.
    """
    spellings = dict.fromkeys((package, re.sub(r"[-.]+", "_", package).lower()))
    for name in spellings:
        folder = name.replace(".", "/")
        for root in search_paths if _IMPORT_NAME.fullmatch(name) else ():
            if _is_folder(FolderHandle(root, folder)):
                yield FolderHandle(root, f"{folder}/{below}" if below else folder)
                return


def _is_folder(location: FolderHandle) -> bool:
    try:
        with open_folder_at(location):
            return True
    except OSError:
        return False


def _read_bundles(location: FolderHandle) -> Iterator[Bundle]:
    try:
        with open_folder_at(location) as folder:
            names = sorted(name for name, kind in folder.list_entries() if kind is EntryKind.FOLDER)
    except OSError:
        return
    for name in names:
        bundle = open_bundle(location.child(name), LENIENT.scan_policy.with_hidden_files)
        if any(is_skill_md(path) for path in bundle.files):
            yield Bundle(name, bundle.files, bundle.findings)
