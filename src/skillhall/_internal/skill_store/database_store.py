"""Shared skills: the user skills that all servers on one database have, and the verbs on them.

The database decides; folders that mirror it are what everybody reads. System skills stay files.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.reader import open_skill_bundle
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill_store.folder_revision import FolderRevision
from skillhall._internal.skill_store.folder_store import ALL_FILES_SCAN, ImportReport
from skillhall._internal.skill_store.input_checks import (
    SYSTEM,
    USER,
    check_deletion,
    find_replaced_id,
    list_names,
    parse_skill_id,
    prepare_bundles,
    prepare_new_skill,
)
from skillhall._internal.skill_store.mirror import EXECUTABLE_BIT
from skillhall._internal.sources.folder.bundle_reader import load_into_memory
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import ReadOnly, SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.skill_store.folder_store import FolderStore
    from skillhall._internal.skill_store.input_checks import PreparedSkill, StoredSkill
    from skillhall._internal.skill_store.mirror import SkillMirror
    from skillhall._internal.skill_store.store import ComputeFiles
    from skillhall._internal.storage import ports as shared_port
    from skillhall._internal.storage.ports import SharedSkillReader, SharedSkillWriter
    from skillhall._internal.storage.records import SharedSkill

_FOLDER_BY_SOURCE = {source: path for path, source in LOCAL_SKILLS.roots}
_ADDED_ORIGIN, _IMPORTED_ORIGIN = "added", "imported"


class DatabaseStore:
    """The skills of a database, beside the system skills of one run directory."""

    def __init__(
        self,
        run_directory: str,
        store: shared_port.SharedSkillTable,
        mirror: SkillMirror,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._mirror = mirror
        self._clock = clock
        base = os.path.abspath(os.path.expanduser(run_directory))
        self._system_folder = os.path.join(base, *_FOLDER_BY_SOURCE[SYSTEM].split("/"))
        self._unshared_folder = os.path.join(base, *_FOLDER_BY_SOURCE[USER].split("/"))
        self._system_revision = FolderRevision(base, [self._system_folder])

    @property
    def location(self) -> str:
        """What they are known by on this machine."""
        return self._mirror.folder

    @property
    def quick_revision(self) -> str:
        """Another one after each change that this server has heard of."""
        return self._mirror.revision

    def list_unshared_ids(self) -> Sequence[str]:
        """The user skills of the run directory, which belong to this machine alone."""
        root = Root(self._unshared_folder, USER, is_required=False)
        return [skill.id for skill in load_roots([root], LOCAL_SKILLS)]

    def catalog(self) -> Catalog:
        """System and user skills, all of one moment."""
        roots = (
            Root(self._system_folder, SYSTEM, is_required=False),
            Root(self._mirror.folder, USER, is_required=False),
        )
        with self._mirror.lock_folders():
            return load_roots(roots, LOCAL_SKILLS)

    def add(self, id: str, name: str, description: str, body: str = "") -> StoredSkill:  # noqa: A002 - what everybody calls it
        """Make a new user skill.

        Raises: UnsafePath, SkillRejected, Conflict, DatabaseUnavailable, DatabaseFull.
        """
        new = prepare_new_skill(parse_skill_id(id), name, description, body)
        self._write_skills([new], _ADDED_ORIGIN, replace=False)
        return new.skill

    def import_(
        self,
        bundles: Bundle | Iterable[Bundle],
        id: str | None = None,  # noqa: A002 - what everybody calls it
        *,
        replace: bool = False,
    ) -> ImportReport:
        """Take bundles in as user skills, all or none.

        Raises: as `add`, and ReadOnly, and what reading raises.
        """
        given = (bundles,) if isinstance(bundles, Bundle) else tuple(bundles)
        prepared = prepare_bundles(given, id)
        places = self._write_skills(prepared, _IMPORTED_ORIGIN, replace=replace)
        items = [
            one.skill._replace(id=place or one.skill.id)
            for one, place in zip(prepared, places, strict=True)
        ]
        findings = tuple(judged for one in prepared for judged in one.findings)
        return ImportReport(tuple(items), tuple(filter(None, places)), findings)

    def delete(self, id: str, *, shadowed: bool = False) -> None:  # noqa: A002 - what everybody calls it
        """Remove a user skill; one that a system skill shadows only if `shadowed` asks for it.

        Raises: ReadOnly, SkillNotFound, DatabaseUnavailable, DatabaseFull.
        """

        def work(writing: SharedSkillWriter) -> None:
            ids = writing.versions()
            check_deletion(id, ids, served, shadowed=shadowed)
            if id not in ids:
                if id in list_names(self._system_folder):
                    raise ReadOnly(id)
                raise SkillNotFound(id, get_close_matches(id, ids))
            writing.delete(id)

        served = self.catalog()
        self._store.write(work, self._get_timestamp())
        self._mirror.try_refresh()

    def files(self, id: str) -> Bundle | None:  # noqa: A002 - what everybody calls it
        """All files of a user skill; None if it is not there. Raises: DatabaseUnavailable."""

        def work(reading: SharedSkillReader) -> Bundle | None:
            found = reading.find(id)
            return None if found is None else load_into_memory(_build_bundle(found, reading))

        return self._store.read(work)

    def rewrite(self, ids: Sequence[str], decide: ComputeFiles) -> None:
        """Put other files where user skills stand, all or none, while nobody else changes them.

        Raises: what `decide` raises, DatabaseUnavailable, DatabaseFull.
        """

        def work(writing: SharedSkillWriter) -> None:
            present = {identity: writing.find(identity) for identity in ids}
            bundles = {
                identity: None if found is None else _build_bundle(found, writing)
                for identity, found in present.items()
            }
            for identity, files in decide(bundles).items():
                found = present[identity]
                if files is None:
                    writing.delete(identity)
                else:
                    writing.put(identity, files, found.origin if found else _IMPORTED_ORIGIN)

        self._store.write(work, self._get_timestamp())
        self._mirror.try_refresh()

    def revision(self) -> str:
        """A text that is another one as soon as a skill came, went or was edited."""
        return f"{self._system_revision.current()}{self._mirror.revision}"

    def _write_skills(
        self, prepared: Sequence[PreparedSkill], origin: str, *, replace: bool
    ) -> Sequence[str | None]:
        """Keep all of them or none; the ids of those that were replaced."""
        system = list_names(self._system_folder)

        def work(writing: SharedSkillWriter) -> Sequence[str | None]:
            ids = sorted(writing.versions())
            places = [
                find_replaced_id(one.skill.id, ids, system, replace=replace) for one in prepared
            ]
            for one, place in zip(prepared, places, strict=True):
                writing.put(place or one.skill.id, one.files, origin)
            return places

        places = self._store.write(work, self._get_timestamp())
        self._mirror.try_refresh()
        return places

    def _get_timestamp(self) -> str:
        return self._clock().isoformat(timespec="seconds")


def _build_bundle(skill: SharedSkill, reader: SharedSkillReader) -> Bundle:
    """The skill as it is in the database, read on demand."""

    def read(digest: str) -> bytes:
        return reader.read_blob(digest) or b""

    files = {
        path: SkillFile(
            RelativePath.parse(path),
            one.size,
            bool(one.mode & EXECUTABLE_BIT),
            partial(read, one.digest),
        )
        for path, one in skill.files.items()
    }
    return Bundle(skill.id, files)


def copy_to_database(
    folder_store: FolderStore, database_store: DatabaseStore, *, replace: bool
) -> ImportReport:
    """Copy the user skills of a run directory to where all servers have them, all or none.

    Raises: SkillRejected if there is none, and as `SharedSkills.import_`.
    """
    mine = [skill for skill in folder_store.catalog() if skill.source == USER]
    return database_store.import_(
        [open_skill_bundle(skill, ALL_FILES_SCAN) for skill in mine], replace=replace
    )
