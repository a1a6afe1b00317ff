"""Single versions of skills as folders, for requests that name a version."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill_store.input_checks import USER
from skillhall._internal.skill_store.mirror import EXECUTABLE_BIT
from skillhall._internal.skill_store.store import ALL_FILES_SCAN
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import SkillhallError, VersionNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.skill_store.versions.skill_versions import SkillVersions, VersionPin
    from skillhall._internal.storage.records import SkillVersion, StoredFile


class PinnedSkill(NamedTuple):
    """A version of a skill, and the skill in its folder."""

    version: SkillVersion
    skill: CatalogSkill


@dataclass(slots=True)
class PinnedVersions:
    """Writes requested versions to a cache folder. Thread-safe."""

    versions: SkillVersions
    folder: str
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self, pin: VersionPin, *, with_drafts: bool = False) -> PinnedSkill:
        """Return a version, after comparing its folder with the database.

        Raises: VersionNotFound, VersionYanked, DatabaseUnavailable, OSError.
        """
        version = self.versions.resolve(*pin, with_drafts=with_drafts)
        skill, number = version.skill, version.number
        is_deleted, stored = self.versions.table.read(
            lambda reader: (reader.find_deleted(skill), reader.read_files(skill, number))
        )
        if is_deleted or not stored:
            raise VersionNotFound(*pin)
        path = os.path.join(self.folder, f"{skill}@{number}")
        with self._lock:
            if not _has_files(path, skill, stored):
                self._write(path, version)
            loaded = [*load_roots([Root(path, USER, is_required=False)], LOCAL_SKILLS)]
        if not loaded:
            raise VersionNotFound(*pin)
        return PinnedSkill(version, loaded[0])

    def _write(self, path: str, version: SkillVersion) -> None:
        contents = self.versions.table.read(
            lambda reader: reader.read_contents(version.skill, version.number)
        )
        os.makedirs(path, mode=0o700, exist_ok=True)
        with WritableFolder(path) as target, target.lock():
            target.recover()
            if target.entry_kind(version.skill) is None:
                target.create_folder(version.skill, contents)
            else:
                target.replace_folder(version.skill, contents)


def _has_files(path: str, skill: str, stored: Mapping[str, StoredFile]) -> bool:
    try:
        bundle = open_bundle(FolderHandle(path, skill), ALL_FILES_SCAN)
        present = {p: (f.digest(), f.executable) for p, f in bundle.files.items()}
    except (SkillhallError, OSError):
        return False
    return present == {
        file_path: (f"sha256:{file.digest}", bool(file.mode & EXECUTABLE_BIT))
        for file_path, file in stored.items()
    }
