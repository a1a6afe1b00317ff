"""Bundles of folders: files are listed through handles and read on demand."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from skillhall._internal.fs.handles import (
    EntryKind,
    Folder,
    FolderHandle,
    mode_to_entry_kind,
    open_folder_at,
    read_below,
)
from skillhall._internal.fs.kubernetes_volumes import is_volume_link, read_volume_version
from skillhall._internal.policy.folder_walk_rules import (
    ALWAYS_SKIPPED,
    VOLUME_LINK,
    is_volume_entry,
)
from skillhall._internal.skill.bundle import (
    Bundle,
    RelativePath,
    SkillFile,
    is_version_control_name,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.candidate import format_os_error, to_signature
from skillhall.errors import SkillFileNotFound, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillhall._internal.policy.folder_walk_rules import ScanPolicy

MAX_FILES = 2000  # per skill
MAX_FILE_SIZE = 10 * 1024 * 1024  # bytes
MAX_TOTAL_SIZE = 100 * 1024 * 1024  # bytes per skill
MAX_DEPTH = 32  # folders inside a skill
EXECUTABLE = 0o100
_MAX_ATTEMPTS = 100  # for a folder that is replaced repeatedly
_ATTEMPTS_WITHOUT_PAUSE = 5
_PAUSE = 0.01  # seconds
_T = TypeVar("_T")


def open_bundle(location: FolderHandle, policy: ScanPolicy) -> Bundle:
    """Return the bundle of a folder, sorted by path. Raises: SkillFileNotFound."""
    return call_with_bundle(location, policy, lambda bundle: bundle)


def call_with_bundle(
    location: FolderHandle, policy: ScanPolicy, callback: Callable[[Bundle], _T]
) -> _T:
    """Call `callback` with a consistent bundle of the folder; return its result.

    If the folder is replaced during the call, `callback` reads the old files. If one of them is
    missing, it is called again with the new files.
    Raises: SkillFileNotFound if there is no such folder, and errors of `callback`.
    """
    for attempt in range(_MAX_ATTEMPTS):
        try:
            return _call_with_current_bundle(location, policy, callback)
        except _FolderReplaced:
            _pause_before_retry(attempt)
    raise SkillFileNotFound(location.name)


def _pause_before_retry(attempt: int) -> None:
    """Pause before later retries: a writer may be replacing the folder in a loop."""
    if attempt >= _ATTEMPTS_WITHOUT_PAUSE:
        time.sleep(_PAUSE)


def _call_with_current_bundle(
    location: FolderHandle, policy: ScanPolicy, callback: Callable[[Bundle], _T]
) -> _T:
    """Call `callback` with a bundle of the folder's current version.

    The folder stays open, so that its inode number cannot be reused by its replacement.
    Raises: SkillFileNotFound, _FolderReplaced, and errors of `callback`.
    """
    reader = None
    try:
        folder = open_folder_at(location, will_list=True)
    except OSError:
        raise SkillFileNotFound(location.name) from None
    try:
        try:
            reader = _FileReader(location, _FolderVersion(folder.device_and_inode()), folder)
            bundle = _list_bundle(policy, reader, folder)
        except _FolderReplaced:
            raise
        except OSError:
            raise SkillFileNotFound(location.name) from None
        try:
            return callback(bundle)
        except SkillFileNotFound:
            if _is_current(location, reader.version):
                raise
            raise _FolderReplaced from None
    finally:
        if reader is not None:
            reader.folder = None  # later reads open it again for each file
        folder.close()


def _list_bundle(policy: ScanPolicy, reader: _FileReader, folder: Folder) -> Bundle:
    """List the open folder of the reader. Raises: OSError, _FolderReplaced."""
    lister = _BundleLister(reader)
    try:
        lister.list_folder(folder)
        if lister.has_hidden_entries and policy.include_hidden_files:
            lister.is_hidden_pass = True
            lister.list_folder(folder)
    finally:
        if lister.volume is not None:
            lister.volume.close()
    # A folder that was replaced may have lost files while they were listed.
    if not _is_at_path(reader.location, reader.version):
        with _open_unchanged(reader.location, reader.version):
            pass
    files = {file.path.text: file for file in sorted(lister.files, key=attrgetter("path.text"))}
    return Bundle(reader.location.path, files, tuple(lister.findings))


def read_bundle(location: FolderHandle, policy: ScanPolicy) -> Bundle:
    """Read a folder's bundle into memory, as one consistent version.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    return call_with_bundle(location, policy, load_into_memory)


def load_into_memory(bundle: Bundle) -> Bundle:
    """Return a copy of the bundle with all files in memory. Raises: SkillhallError."""
    files = {}
    for path, file in bundle.files.items():
        data = file.read()
        files[path] = file._replace(size=len(data), read=partial(bytes, data))
    return replace(bundle, files=files)


class _FolderReplaced(OSError):
    """The listed folder was replaced by another one."""


class _FolderVersion(NamedTuple):
    """Version of a skill's folder, which changes when the folder is replaced."""

    identity: tuple[int, int]  # device and inode
    volume: str = ""  # the dated folder of a Kubernetes volume


@contextmanager
def _open_unchanged(location: FolderHandle, version: _FolderVersion) -> Iterator[Folder]:
    """Open the folder if it is still the listed version.

    Raises: OSError, _FolderReplaced.
    """
    with open_folder_at(location) as folder:
        if folder.device_and_inode() != version.identity:
            raise _FolderReplaced
        if version.volume and read_volume_version(folder) != version.volume:
            raise _FolderReplaced
        yield folder


def _is_at_path(location: FolderHandle, version: _FolderVersion) -> bool:
    """Whether this version of the folder is still at its path; false for volumes."""
    try:
        status = os.lstat(location.path)
    except OSError:
        return False
    return not version.volume and (status.st_dev, status.st_ino) == version.identity


def _is_current(location: FolderHandle, version: _FolderVersion) -> bool:
    """Whether the folder still has this version, or can no longer be opened."""
    try:
        with _open_unchanged(location, version):
            return True
    except _FolderReplaced:
        return False
    except OSError:
        return True


def open_flat_bundle(location: FolderHandle, name: str) -> Bundle:
    """Return the bundle of a single file in a folder. Raises: SkillFileNotFound."""
    relative = RelativePath.parse(name)
    try:
        with open_folder_at(location) as folder:
            stat = folder.stat(name)
    except OSError:
        raise SkillFileNotFound(name) from None
    file = _build_skill_file(relative, stat, partial(read_file_at, location))
    return Bundle(location.path, {name: file})


def _build_skill_file(
    path: RelativePath, stat: os.stat_result, read: Callable[[RelativePath], bytes]
) -> SkillFile:
    is_executable = bool(stat.st_mode & EXECUTABLE)
    signature = to_signature(stat)
    return SkillFile(path, stat.st_size, is_executable, partial(read, path), signature)


def read_file_at(
    location: FolderHandle, path: RelativePath, max_bytes: int = MAX_FILE_SIZE
) -> bytes:
    """Read one file, from the new folder if its folder is replaced during the call.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    for attempt in range(_MAX_ATTEMPTS):
        try:
            with open_folder_at(location) as folder:
                try:
                    return read_below(folder, path, max_bytes)
                except SkillFileNotFound:
                    if _is_current(location, _FolderVersion(folder.device_and_inode())):
                        raise
        except OSError:
            break
        _pause_before_retry(attempt)
    raise SkillFileNotFound(path.text) from None


@dataclass(slots=True)
class _FileReader:
    """Reads files of one version of a folder, through its handle while it is open."""

    location: FolderHandle
    version: _FolderVersion
    folder: Folder | None

    def read(self, path: RelativePath) -> bytes:
        """Read one file. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
        if self.folder is not None and not self.version.volume:
            return read_below(self.folder, path, MAX_FILE_SIZE)
        try:
            with _open_unchanged(self.location, self.version) as folder:
                return read_below(folder, path, MAX_FILE_SIZE)
        except OSError:
            raise SkillFileNotFound(path.text) from None


@dataclass(slots=True)
class _BundleLister:
    """Lists the files of a skill's folder, with findings about entries left out."""

    reader: _FileReader
    files: list[SkillFile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    is_full: bool = False  # a limit is reached, and no more files are added
    total_size: int = 0  # bytes
    volume: Folder | None = None  # the dated folder of a Kubernetes volume
    # Hidden files are listed in a second pass, so that they never use up the limits of others.
    is_hidden_pass: bool = False
    has_hidden_entries: bool = False

    def list_folder(
        self, folder: Folder, prefix: str = "", depth: int = 0, *, is_hidden: bool = False
    ) -> None:
        """List the files of this pass in an open folder; their paths start with `prefix`.

        Raises: OSError, or _FolderReplaced if the folder is a Kubernetes volume.
        """
        try:
            entries = folder.list_entries()
        except OSError as error:
            path = prefix.rstrip("/")
            self._report_skipped(f"it cannot be read ({format_os_error(error)})", path)
            return
        is_top = not depth and self.volume is None
        if is_top and (VOLUME_LINK, EntryKind.LINK) in entries:
            self._open_volume(folder)
            entries = folder.list_entries()  # the volume may have been updated in between
        for name, kind in sorted(entries, key=itemgetter(0)):
            if is_ignored(name) or (self.volume is not None and is_volume_entry(name)):
                continue  # the files of a volume are listed under the names of their links
            is_hidden_entry = is_hidden or name[0] == "."
            if is_hidden_entry and not self.is_hidden_pass:
                self.has_hidden_entries = True
                continue
            if self.is_hidden_pass and not is_hidden_entry:
                if kind is EntryKind.FOLDER and depth < MAX_DEPTH:
                    with suppress(OSError), folder.open_folder(name) as subfolder:
                        self.list_folder(subfolder, f"{prefix}{name}/", depth + 1)
                continue
            is_top_link = kind is EntryKind.LINK and not depth
            try:
                if is_top_link and self.volume is not None and is_volume_link(folder, name):
                    # The volume's file or folder is added, under the name of its link.
                    volume_kind = mode_to_entry_kind(self.volume.stat(name).st_mode)
                    self._add_entry(self.volume, name, volume_kind, name, 0)
                else:
                    self._add_entry(folder, name, kind, prefix + name, depth)
            except OSError as error:
                self._report_skipped(f"it cannot be read ({format_os_error(error)})", prefix + name)

    def _open_volume(self, folder: Folder) -> None:
        """Open the dated folder of a Kubernetes volume. Raises: OSError, _FolderReplaced."""
        try:
            version = read_volume_version(folder)
        except OSError:
            return
        try:
            self.volume = folder.open_folder(version)
        except FileNotFoundError:  # the volume was just updated
            raise _FolderReplaced from None
        self.reader.version = self.reader.version._replace(volume=version)

    def _add_entry(self, folder: Folder, name: str, kind: EntryKind, path: str, depth: int) -> None:
        """Add a file, or all files of a folder. Raises: OSError."""
        if kind is EntryKind.LINK:
            self._report_skipped("it is a link", path, "copy the file instead")
            return
        if kind is EntryKind.OTHER:
            self._report_skipped("it is not a regular file", path, "remove it")
            return
        try:
            relative = RelativePath.parse(path)
        except UnsafePath as error:
            self._report_skipped(f"{path!a}: {error.reason}", "", "rename it")
            return
        if kind is EntryKind.FILE:
            if not self.is_full:
                self._add_file(relative, folder, name)
        elif depth >= MAX_DEPTH:
            self._report_skipped(f"it is nested deeper than {MAX_DEPTH} folders", path)
        else:
            with folder.open_folder(name) as subfolder:
                is_hidden = self.is_hidden_pass
                self.list_folder(subfolder, f"{path}/", depth + 1, is_hidden=is_hidden)

    def _add_file(self, relative: RelativePath, parent: Folder, name: str) -> None:
        path = relative.text
        if len(self.files) >= MAX_FILES:
            self.is_full = True
            path = path if self.is_hidden_pass else ""
            message = f"only the first {MAX_FILES} files are used"
            self._add_finding(Code.TOO_MANY_FILES, message, path)
            return
        stat = parent.stat(name)
        if stat.st_size > MAX_FILE_SIZE:
            message = f"the file has more than {MAX_FILE_SIZE} bytes"
            self._add_finding(Code.FILE_TOO_LARGE, message, path)
            return
        self.total_size += stat.st_size
        if self.total_size > MAX_TOTAL_SIZE:
            self.is_full = True
            message = f"the skill's files have more than {MAX_TOTAL_SIZE} bytes"
            self._add_finding(Code.FILE_TOO_LARGE, f"{message}; the rest is left out", path)
            return
        self.files.append(_build_skill_file(relative, stat, self.reader.read))

    def _report_skipped(self, reason: str, path: str, hint: str = "") -> None:
        message = f"left out of the skill's files: {reason}"
        self._add_finding(Code.FILE_LEFT_OUT, message, path, hint)

    def _add_finding(self, code: Code, message: str, path: str, hint: str = "") -> None:
        self.findings.append(Finding(code, message, hint=hint, path=path))


@lru_cache(maxsize=1024)  # the files of many skills have the same few names
def is_ignored(name: str) -> bool:
    """Whether a file or folder of this name never belongs to a skill."""
    return name in ALWAYS_SKIPPED or name.startswith("._") or is_version_control_name(name)
