"""A shelf: the skills of one project or one person, with their locks, earlier versions and history.

Every place on it is written relative to its root. Whoever changes it holds its lock for as long as
that takes; what must be fetched is fetched before.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import Place, is_beneath
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.lock import (
    PROJECT_LOCK,
    USER_LOCK,
    Lock,
    place_of,
    read_lock,
    user_lock_folder,
)
from skillhall._internal.installer.npx_lock import ForeignPlace, project_place, user_place
from skillhall._internal.policy.profiles import SKILLS_MODULE
from skillhall._internal.policy.scan_rules import LITTER, is_volume_entry
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.skill.merge import FileState
from skillhall._internal.sources.folder.bundle_reader import read_bundle
from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.history import History
from skillhall.errors import LockNotFound, NotASkill, SkillFileNotFound, UnsafePath, WouldLose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from skillhall._internal.installer.lock import LockEntry
    from skillhall._internal.settings import Settings


_LEADS_OUT = "a link in it leads out of the project"
_NOT_A_FOLDER = {errno.ELOOP, errno.ENOTDIR}


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Shelf:
    """One project, or one person's home."""

    root: str
    is_user: bool
    settings: Settings
    clock: Callable[[], datetime] = _now

    @classmethod
    def of(cls, settings: Settings, *, user: bool = False) -> Shelf:
        """The shelf of the working directory, or of the person."""
        return cls(settings.home if user else settings.working_directory, user, settings)

    @property
    def lock_folder(self) -> str:
        """Where the lock lies."""
        return user_lock_folder(self.root) if self.is_user else self.root

    @property
    def lock_name(self) -> str:
        """What the lock is called."""
        return USER_LOCK if self.is_user else PROJECT_LOCK

    @property
    def foreign(self) -> ForeignPlace:
        """The lock of `npx skills` for the same skills."""
        if self.is_user:
            return user_place(self.root, self.settings.variables)
        return project_place(self.root)

    @property
    def contents(self) -> ContentStore:
        """Where earlier versions are kept."""
        return ContentStore(self.settings.data_directory)

    @property
    def history(self) -> History:
        """What was changed here."""
        return History(self.settings.data_directory, self.root)

    def lock(self) -> Lock:
        """The lock as it is. Raises: LockInvalid, OSError."""
        return read_lock(self.lock_folder, self.lock_name)

    def locked(self) -> Mapping[str, LockEntry]:
        """The entries of the lock file, which must exist.

        Raises: LockNotFound, LockInvalid, OSError.
        """
        entries = self.lock().entries
        if not entries and not os.path.lexists(os.path.join(self.lock_folder, self.lock_name)):
            other = self.foreign
            has_other = os.path.lexists(os.path.join(other.folder, other.name))
            raise LockNotFound(self.lock_name, other.name if has_other else "")
        return entries

    def path(self, key: str) -> str:
        """The whole path of a place."""
        return os.path.join(self.root, *key.split("/"))

    def key(self, path: str) -> str | None:
        """The place of a path; `None` for the root itself and what lies outside."""
        if not is_beneath(path, self.root) or path == self.root:
            return None
        return os.path.relpath(path, self.root).replace(os.sep, "/")

    def leads_to(self, place: str, key: str) -> bool:
        """Whether the place is a link to the skill at `key`, there or not: one of ours."""
        path = self.path(place)
        return os.path.islink(path) and os.path.realpath(path) == os.path.realpath(self.path(key))

    def real_folder(self, folder: str) -> str:
        """Where the folder lies behind its links: in a project, inside of it.

        Raises: UnsafePath.
        """
        path, root = os.path.realpath(self.path(folder)), os.path.realpath(self.root)
        if is_beneath(path, root):
            if path != root:
                place_of(os.path.relpath(path, root).replace(os.sep, "/"))
        elif not self.is_user:  # people link their folders to where they keep them
            raise UnsafePath(folder, _LEADS_OUT)
        return path

    def check(self, folder: str) -> None:
        """Whether `opened` could open the folder at a place, or make it. Raises: as that does."""
        path = self.real_folder(folder)
        while not os.path.lexists(path):
            path = os.path.dirname(path)
        if not os.path.isdir(path):
            name = os.path.basename(path)
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)

    @contextmanager
    def opened(self, folder: str, *, make: bool = True) -> Iterator[WritableFolder]:
        """The folder at a place, to write into. Raises: UnsafePath, OSError."""
        place = self.place(folder)
        with ExitStack() as stack:
            if not place.below and place.root != os.path.realpath(self.root):
                os.makedirs(place.root, exist_ok=True)
            current = stack.enter_context(WritableFolder(place.root))
            for name in place.below.split("/") if place.below else ():
                current = stack.enter_context(_entered(current, name, folder, make=make))
            yield current

    def place(self, key: str) -> Place:
        """Where a key leads, to be walked there by handles; in a project, not out of it.

        Raises: UnsafePath.
        """
        path, root = self.real_folder(key), os.path.realpath(self.root)
        if not is_beneath(path, root):
            return Place(path)
        below = os.path.relpath(path, root).replace(os.sep, "/")
        return Place(root, "" if below == "." else below)


def _entered(parent: WritableFolder, name: str, key: str, *, make: bool) -> WritableFolder:
    try:
        return parent.folder(name, make=make)
    except OSError as error:
        if error.errno in _NOT_A_FOLDER:  # it was one when its path was looked up
            raise UnsafePath(key, _LEADS_OUT) from None
        raise


class Installed(NamedTuple):
    """What stands at a place: its files, and what could not be put back if it were replaced."""

    files: Mapping[str, FileState]
    strange: tuple[str, ...] = ()


def read_installed(shelf: Shelf, key: str) -> Installed | None:
    """The skill's folder as it is; `None` if nothing is there. Raises: OSError, SkillhallError."""
    return read_folder(shelf.path(key), key, partial(shelf.place, key))


def read_folder(path: str, name: str, find: Callable[[], Place] | None = None) -> Installed | None:
    """The same for any folder; what is no folder is strange as a whole, by its name."""
    if not os.path.lexists(path):
        return None
    if os.path.islink(path) or not os.path.isdir(path):
        return Installed({}, (name,))
    try:
        bundle = read_bundle(find() if find else Place(os.path.realpath(path)), SKILLS_MODULE.scan)
    except (SkillFileNotFound, OSError):
        if os.path.lexists(path):
            raise
        return None  # it was removed meanwhile
    files = {path: FileState(file.read(), file.executable) for path, file in bundle.files.items()}
    left_out = [found.path for found in bundle.findings]
    return Installed(files, (*_passed_over(os.path.realpath(path)), *left_out))


def _passed_over(path: str) -> Iterator[str]:
    """What no bundle holds and a person would miss, at any depth: version control, volumes."""
    for folder, folders, files in os.walk(path):
        for name in sorted(filter(_is_missed, {*folders, *files})):
            yield os.path.relpath(os.path.join(folder, name), path).replace(os.sep, "/")
        folders[:] = [name for name in folders if name not in LITTER]


def _is_missed(name: str) -> bool:
    return name in LITTER - {".DS_Store"} or is_volume_entry(name)


def refuse_loss(place: str, old: Installed | None, *, is_skill: bool = False) -> None:
    """Let pass what can be put back and is a skill, or stands where only skills do.

    A lock may come from a stranger, and name any folder. Raises: WouldLose, NotASkill.
    """
    if old is None:
        return
    if old.strange:
        raise WouldLose(place, old.strange)
    if old.files and not is_skill and not any(map(is_skill_md, old.files)):
        raise NotASkill(place)
