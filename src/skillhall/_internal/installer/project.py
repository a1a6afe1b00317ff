"""Projects and user scopes: paths, lock files, history and installed files.

Paths of targets are relative to the root, with "/" as separator. Changes lock the project only
while writing; anything remote is fetched before that.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from skillhall._internal.fs.handles import FolderHandle, is_inside
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.lock import (
    PROJECT_LOCK,
    USER_LOCK,
    Lock,
    LockEntry,
    get_user_lock_folder,
    parse_target_path,
    read_lock,
)
from skillhall._internal.installer.npx_lock import PROJECT_FORMAT, USER_FORMAT, NpxLockPath
from skillhall._internal.policy.folder_walk_rules import ALWAYS_SKIPPED, is_volume_entry
from skillhall._internal.policy.profiles import SKILLS_MODULE
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import is_version_control_name
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.skill.merge import FileState
from skillhall._internal.sources.folder.bundle_reader import read_bundle
from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.history import History
from skillhall.errors import (
    LockNotFound,
    NotASkill,
    SkillFileNotFound,
    UnsafePath,
    UnsavedFilesError,
)

_LINK_LEAVES_PROJECT = "a link leads out of the project"
_UTC_CLOCK = partial(datetime.now, UTC)
_NOT_A_FOLDER_ERRORS = {errno.ELOOP, errno.ENOTDIR}


@dataclass(frozen=True, slots=True)
class Project:
    """A project, or a user's home folder."""

    root: str
    is_user: bool
    settings: Settings
    clock: Callable[[], datetime] = _UTC_CLOCK

    @classmethod
    def from_settings(cls, settings: Settings, *, user: bool = False) -> Project:
        """Return the project of the working directory, or the user scope."""
        return cls(settings.home if user else settings.working_directory, user, settings)

    @property
    def lock_folder(self) -> str:
        """Folder of the lock file."""
        return get_user_lock_folder(self.root) if self.is_user else self.root

    @property
    def lock_name(self) -> str:
        """Name of the lock file."""
        return USER_LOCK if self.is_user else PROJECT_LOCK

    @property
    def npx_lock_path(self) -> NpxLockPath:
        """The npx lock for the same skills."""
        if not self.is_user:
            return NpxLockPath(self.root, "skills-lock.json", PROJECT_FORMAT)
        state = self.settings.variables.get("XDG_STATE_HOME", "")
        parts = (state, "skills") if os.path.isabs(state) else (self.root, ".agents")
        return NpxLockPath(os.path.join(*parts), ".skill-lock.json", USER_FORMAT)

    @property
    def content_store(self) -> ContentStore:
        """Store of file contents by digest, for rollbacks and merges."""
        return ContentStore(self.settings.data_directory)

    @property
    def history(self) -> History:
        """History of the changes to this project."""
        return History(self.settings.data_directory, self.root)

    def read_lock(self) -> Lock:
        """Read the lock file. Raises: LockInvalid, OSError."""
        return read_lock(self.lock_folder, self.lock_name)

    def read_lock_entries(self) -> Mapping[str, LockEntry]:
        """Return the entries of the lock file, which must exist.

        Raises: LockNotFound, LockInvalid, OSError.
        """
        entries = self.read_lock().entries
        if not entries and not os.path.lexists(os.path.join(self.lock_folder, self.lock_name)):
            npx = self.npx_lock_path
            has_npx_lock = os.path.lexists(os.path.join(npx.folder, npx.name))
            raise LockNotFound(self.lock_name, npx.name if has_npx_lock else "")
        return entries

    def path(self, key: str) -> str:
        """Return the absolute path of a key."""
        return os.path.join(self.root, *key.split("/"))

    def key(self, path: str) -> str | None:
        """Return the key of a path; `None` for the root itself and paths outside."""
        if not is_inside(path, self.root) or path == self.root:
            return None
        return os.path.relpath(path, self.root).replace(os.sep, "/")

    def is_link_to(self, target_path: str, key: str) -> bool:
        """Whether the target is a link to the skill at `key`, which need not exist."""
        path = self.path(target_path)
        return os.path.islink(path) and os.path.realpath(path) == os.path.realpath(self.path(key))

    def resolve_folder(self, folder: str) -> str:
        """Return the real path of a folder, which must be inside the project.

        In the user scope, it may be outside the home folder. Raises: UnsafePath.
        """
        path, root = os.path.realpath(self.path(folder)), os.path.realpath(self.root)
        if is_inside(path, root):
            if path != root:
                parse_target_path(os.path.relpath(path, root).replace(os.sep, "/"))
        elif not self.is_user:  # in a home folder, links to dotfiles elsewhere are common
            raise UnsafePath(folder, _LINK_LEAVES_PROJECT)
        return path

    def check_folder(self, folder: str) -> None:
        """Check that `open_folder` could open or create the folder.

        Raises: UnsafePath, OSError.
        """
        path = self.resolve_folder(folder)
        while not os.path.lexists(path):
            path = os.path.dirname(path)
        if not os.path.isdir(path):
            name = os.path.basename(path)
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)

    @contextmanager
    def open_folder(self, folder: str, *, make: bool = True) -> Iterator[WritableFolder]:
        """Open the folder for writing; `make` creates it. Raises: UnsafePath, OSError."""
        handle = self.get_folder_handle(folder)
        with ExitStack() as stack:
            if not handle.relative_path and handle.root != os.path.realpath(self.root):
                os.makedirs(handle.root, exist_ok=True)
            current = stack.enter_context(WritableFolder(handle.root))
            # Opened level by level: a link that appears in between must not be followed.
            for name in handle.relative_path.split("/") if handle.relative_path else ():
                try:
                    current = stack.enter_context(current.open_folder(name, create=make))
                except OSError as error:
                    if error.errno in _NOT_A_FOLDER_ERRORS:
                        raise UnsafePath(folder, _LINK_LEAVES_PROJECT) from None
                    raise
            yield current

    def get_folder_handle(self, key: str) -> FolderHandle:
        """Return the handle of the folder at `key`. Raises: as `resolve_folder`."""
        path, root = self.resolve_folder(key), os.path.realpath(self.root)
        if not is_inside(path, root):
            return FolderHandle(path)
        below = os.path.relpath(path, root).replace(os.sep, "/")
        return FolderHandle(root, "" if below == "." else below)


class InstalledFiles(NamedTuple):
    """Files of a target, and paths that could not be restored if it were replaced."""

    files: Mapping[str, FileState]
    unrestorable: tuple[str, ...] = ()


def read_installed(project: Project, key: str) -> InstalledFiles | None:
    """Read a target; `None` if it does not exist. Raises: OSError, SkillhallError."""
    return read_installed_folder(project.path(key), key, partial(project.get_folder_handle, key))


def read_installed_folder(
    path: str, name: str, find_handle: Callable[[], FolderHandle] | None = None
) -> InstalledFiles | None:
    """Read any folder; `None` if it does not exist.

    If `path` is a link or a file, `name` is reported as unrestorable.
    Raises: OSError, SkillhallError.
    """
    if not os.path.lexists(path):
        return None
    if os.path.islink(path) or not os.path.isdir(path):
        return InstalledFiles({}, (name,))
    try:
        bundle = read_bundle(
            find_handle() if find_handle else FolderHandle(os.path.realpath(path)),
            SKILLS_MODULE.scan_policy,
        )
    except (SkillFileNotFound, OSError):
        if os.path.lexists(path):
            raise
        return None  # removed while it was being read
    files = {path: FileState(file.read(), file.executable) for path, file in bundle.files.items()}
    unrestorable, root = [], os.path.realpath(path)
    # Bundles skip these entries without a finding, but users would miss them.
    for folder, folders, names in os.walk(root):
        for entry in sorted({*folders, *names}):
            is_skipped = entry in ALWAYS_SKIPPED or is_version_control_name(entry)
            if (is_skipped and entry != ".DS_Store") or is_volume_entry(entry):
                relative = os.path.relpath(os.path.join(folder, entry), root)
                unrestorable.append(relative.replace(os.sep, "/"))
        folders[:] = [entry for entry in folders if entry not in ALWAYS_SKIPPED]
    skipped = [finding.path for finding in bundle.findings]
    return InstalledFiles(files, (*unrestorable, *skipped))


def check_replaceable(
    target_path: str, installed: InstalledFiles | None, *, is_skill: bool = False
) -> None:
    """Check that a target is a skill that can be restored after it is replaced.

    A lock file may come from an untrusted repository and name any folder. `is_skill` means that
    the folder is known to be a skill. Raises: UnsavedFilesError, NotASkill.
    """
    if installed is None:
        return
    if installed.unrestorable:
        raise UnsavedFilesError(target_path, installed.unrestorable)
    if installed.files and not is_skill and not any(map(is_skill_md, installed.files)):
        raise NotASkill(target_path)
