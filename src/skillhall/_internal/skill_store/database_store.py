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
from skillhall._internal.catalog.reader import bundle_of
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill_store.folder_revision import FolderRevision
from skillhall._internal.skill_store.folder_store import EVERY_FILE, ImportReport
from skillhall._internal.skill_store.input_checks import (
    SYSTEM,
    USER,
    checked_id,
    names_in,
    place_of,
    prepare_all,
    prepare_new,
    refuse_other_copy,
)
from skillhall._internal.skill_store.mirror import EXECUTABLE
from skillhall._internal.sources.folder.bundle_reader import in_memory
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import ReadOnly, SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.skill_store.folder_store import LocalSkills
    from skillhall._internal.skill_store.input_checks import LocalSkill, Prepared
    from skillhall._internal.skill_store.mirror import Mirror
    from skillhall._internal.skill_store.store import Decide
    from skillhall._internal.storage import ports as shared_port
    from skillhall._internal.storage.ports import SharedReading, SharedWriting
    from skillhall._internal.storage.records import SharedSkill

_FOLDERS = {source: path for path, source in LOCAL_SKILLS.roots}
_ADDED, _IMPORTED = "added", "imported"


class SharedSkills:
    """The skills of a database, beside the system skills of one run directory."""

    def __init__(
        self,
        run_directory: str,
        store: shared_port.SharedSkills,
        mirror: Mirror,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._mirror = mirror
        self._clock = clock
        base = os.path.abspath(os.path.expanduser(run_directory))
        self._system = os.path.join(base, *_FOLDERS[SYSTEM].split("/"))
        self._unshared = os.path.join(base, *_FOLDERS[USER].split("/"))
        self._system_revision = FolderRevision(base, [self._system])

    @property
    def place(self) -> str:
        """What they are known by on this machine."""
        return self._mirror.folder

    @property
    def pulse(self) -> str:
        """Another one after each change that this server has heard of."""
        return self._mirror.revision

    def left_out(self) -> Sequence[str]:
        """The user skills of the run directory, which belong to this machine alone."""
        root = Root(self._unshared, USER, expected=False)
        return [skill.id for skill in load_roots([root], LOCAL_SKILLS)]

    def catalog(self) -> Catalog:
        """System and user skills, all of one moment."""
        roots = (
            Root(self._system, SYSTEM, expected=False),
            Root(self._mirror.folder, USER, expected=False),
        )
        with self._mirror.held():
            return load_roots(roots, LOCAL_SKILLS)

    def add(self, id: str, name: str, description: str, body: str = "") -> LocalSkill:  # noqa: A002 - what everybody calls it
        """Make a new user skill.

        Raises: UnsafePath, SkillRejected, Conflict, DatabaseUnavailable, DatabaseFull.
        """
        new = prepare_new(checked_id(id), name, description, body)
        self._put([new], _ADDED, replace=False)
        return new.item

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
        prepared = prepare_all(given, id)
        places = self._put(prepared, _IMPORTED, replace=replace)
        items = [
            one.item._replace(id=place or one.item.id)
            for one, place in zip(prepared, places, strict=True)
        ]
        findings = tuple(judged for one in prepared for judged in one.findings)
        return ImportReport(tuple(items), tuple(filter(None, places)), findings)

    def delete(self, id: str, *, shadowed: bool = False) -> None:  # noqa: A002 - what everybody calls it
        """Remove a user skill; one that a system skill shadows only if `shadowed` asks for it.

        Raises: ReadOnly, SkillNotFound, DatabaseUnavailable, DatabaseFull.
        """

        def work(writing: SharedWriting) -> None:
            ids = writing.versions()
            refuse_other_copy(id, ids, served, shadowed=shadowed)
            if id not in ids:
                if id in names_in(self._system):
                    raise ReadOnly(id)
                raise SkillNotFound(id, get_close_matches(id, ids))
            writing.drop(id)

        served = self.catalog()
        self._store.change(work, self._now())
        self._mirror.catch_up()

    def files(self, id: str) -> Bundle | None:  # noqa: A002 - what everybody calls it
        """All files of a user skill; None if it is not there. Raises: DatabaseUnavailable."""

        def work(reading: SharedReading) -> Bundle | None:
            found = reading.find(id)
            return None if found is None else in_memory(_bundle(found, reading))

        return self._store.look(work)

    def rewrite(self, ids: Sequence[str], decide: Decide) -> None:
        """Put other files where user skills stand, all or none, while nobody else changes them.

        Raises: what `decide` raises, DatabaseUnavailable, DatabaseFull.
        """

        def work(writing: SharedWriting) -> None:
            present = {identity: writing.find(identity) for identity in ids}
            bundles = {
                identity: None if found is None else _bundle(found, writing)
                for identity, found in present.items()
            }
            for identity, files in decide(bundles).items():
                found = present[identity]
                if files is None:
                    writing.drop(identity)
                else:
                    writing.put(identity, files, found.origin if found else _IMPORTED)

        self._store.change(work, self._now())
        self._mirror.catch_up()

    def revision(self) -> str:
        """A text that is another one as soon as a skill came, went or was edited."""
        return f"{self._system_revision.text()}{self._mirror.revision}"

    def _put(
        self, prepared: Sequence[Prepared], origin: str, *, replace: bool
    ) -> Sequence[str | None]:
        """Keep all of them or none; the ids of those that were replaced."""
        system = names_in(self._system)

        def work(writing: SharedWriting) -> Sequence[str | None]:
            ids = sorted(writing.versions())
            places = [place_of(one.item.id, ids, system, replace=replace) for one in prepared]
            for one, place in zip(prepared, places, strict=True):
                writing.put(place or one.item.id, one.files, origin)
            return places

        places = self._store.change(work, self._now())
        self._mirror.catch_up()
        return places

    def _now(self) -> str:
        return self._clock().isoformat(timespec="seconds")


def _bundle(skill: SharedSkill, reading: SharedReading) -> Bundle:
    """The skill as it is in the database, read on demand."""

    def read(digest: str) -> bytes:
        return reading.read(digest) or b""

    files = {
        path: SkillFile(
            RelativePath.parse(path),
            one.size,
            bool(one.mode & EXECUTABLE),
            partial(read, one.digest),
        )
        for path, one in skill.files.items()
    }
    return Bundle(skill.id, files)


def share_skills(local: LocalSkills, shared: SharedSkills, *, replace: bool) -> ImportReport:
    """Copy the user skills of a run directory to where all servers have them, all or none.

    Raises: SkillRejected if there is none, and as `SharedSkills.import_`.
    """
    mine = [skill for skill in local.catalog() if skill.source == USER]
    return shared.import_([bundle_of(skill, EVERY_FILE) for skill in mine], replace=replace)
