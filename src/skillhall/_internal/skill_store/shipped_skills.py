"""The skills that Skillhall ships, and putting them where a run directory keeps system skills."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import Kind, Place
from skillhall._internal.policy.scan_rules import ScanPolicy
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

    from skillhall._internal.fs.write import WritableFolder

# How a shipped skill is told from one that somebody else put there.
MARK = ("shipped-with", "skillhall")
_EVERYTHING = ScanPolicy(hidden_in_bundles=True)
_FILE = 0o644


class InstallReport(NamedTuple):
    """What became of each shipped skill, by id."""

    written: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()  # somebody else's, under the same id


def shipped_skills() -> Mapping[str, Mapping[str, bytes]]:
    """The files of each shipped skill, by id and path."""
    folder = files("skillhall._internal.skill_store") / "system_skills"
    return {
        skill.name: dict(_files_below(skill, ""))
        for skill in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if skill.is_dir()
    }


def install(target: WritableFolder, path: str) -> InstallReport:
    """Bring the shipped skills into the open and locked folder at `path`. Raises: OSError."""
    became: dict[str, list[str]] = {"written": [], "unchanged": [], "left_alone": []}
    for identity, wanted in shipped_skills().items():
        became[_put(target, path, identity, wanted)].append(identity)
    return InstallReport(*(tuple(ids) for ids in became.values()))


def _put(target: WritableFolder, path: str, identity: str, wanted: Mapping[str, bytes]) -> str:
    fresh = {name: (data, _FILE) for name, data in wanted.items()}
    kind = target.kind(identity)
    if kind is None:
        target.put_folder(identity, fresh)
        return "written"
    present = _read(Place(path, identity)) if kind is Kind.FOLDER else {}
    if present == wanted:
        return "unchanged"
    if not _is_ours(present.get(SKILL_MD, b"")):
        return "left_alone"
    target.swap_folder(identity, fresh)
    return "written"


def _is_ours(skill_md: bytes) -> bool:
    key, value = MARK
    return parse_skill(skill_md).frontmatter.metadata.get(key) == value


def _read(place: Place) -> dict[str, bytes]:
    try:
        return {path: file.read() for path, file in open_bundle(place, _EVERYTHING).files.items()}
    except SkillhallError:  # it changes while we look: whoever changes it is at work there
        return {}


def _files_below(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            yield from _files_below(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_bytes()
