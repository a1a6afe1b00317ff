"""Skills that ship with Skillhall, and their installation as system skills."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import EntryKind, FolderHandle
from skillhall._internal.installer.install import build_bundle
from skillhall._internal.policy.folder_walk_rules import ScanPolicy
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.merge import FileState
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from importlib.resources.abc import Traversable

    from skillhall._internal.fs.write import WritableFolder
    from skillhall._internal.skill.bundle import Bundle

# Marks a shipped skill, so that one from elsewhere under the same id is never replaced.
SHIPPED_METADATA = ("shipped-with", "skillhall")
_ALL_FILES_SCAN = ScanPolicy(include_hidden_files=True)
_FILE_MODE = 0o644


class ShippedSkillsReport(NamedTuple):
    """Result for each shipped skill, by id."""

    written: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()  # another skill has the same id


def read_shipped_skills() -> Mapping[str, Mapping[str, bytes]]:
    """Return the files of each shipped skill, by id and path."""
    return _read_skills("system_skills")


def read_sample_skills() -> Sequence[Bundle]:
    """Return the samples for the first visit, as bundles to import."""
    return [
        build_bundle(
            identity,
            {path: FileState(data, executable=False) for path, data in contents.items()},
        )
        for identity, contents in _read_skills("sample_skills").items()
    ]


def _read_skills(name: str) -> Mapping[str, Mapping[str, bytes]]:
    folder = files("skillhall._internal.skill_store") / name
    return {
        skill.name: dict(_iter_files(skill, ""))
        for skill in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if skill.is_dir()
    }


def install_shipped_skills(target: WritableFolder, path: str) -> ShippedSkillsReport:
    """Install the shipped skills in the locked folder at `path`. Raises: OSError."""
    results: dict[str, list[str]] = {"written": [], "unchanged": [], "skipped": []}
    for identity, shipped_files in read_shipped_skills().items():
        fresh = {name: (data, _FILE_MODE) for name, data in shipped_files.items()}
        kind = target.entry_kind(identity)
        present = _read_files(FolderHandle(path, identity)) if kind is EntryKind.FOLDER else {}
        if kind is None:
            target.create_folder(identity, fresh)
            results["written"].append(identity)
        elif present == shipped_files:
            results["unchanged"].append(identity)
        elif _is_shipped(present.get(SKILL_MD, b"")):
            target.replace_folder(identity, fresh)
            results["written"].append(identity)
        else:
            results["skipped"].append(identity)
    return ShippedSkillsReport(**{key: tuple(ids) for key, ids in results.items()})


def _is_shipped(skill_md: bytes) -> bool:
    key, value = SHIPPED_METADATA
    return parse_skill(skill_md).frontmatter.metadata.get(key) == value


def _read_files(folder: FolderHandle) -> dict[str, bytes]:
    try:
        bundle = open_bundle(folder, _ALL_FILES_SCAN)
        return {path: file.read() for path, file in bundle.files.items()}
    except SkillhallError:  # another process is changing it
        return {}


def _iter_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.is_dir():
            yield from _iter_files(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_bytes()
