"""Folders in a backup: reads them, and replaces their entries in a restore.

A restore writes the new entries to a staging folder inside the folder that they belong to, and
records in a journal that it is going to replace the old ones. Whether the database was committed
decides what happens after a crash: the next start either completes the replacement or removes the
staging folders. A folder itself is never replaced, because other processes lock and watch it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import EntryKind, open_root
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.folder_walk_rules import STAGING_PREFIX
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.storage.backup_format import CHUNK_BYTES, FileChunk
from skillhall.errors import NotAFile, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from skillhall._internal.fs.handles import Folder

JOURNAL = "restore.json"  # in the data folder
_STAGING_FOLDER = f"{STAGING_PREFIX}restore-"  # followed by the id of the restore
_NEW = "new"  # staged entries, in the staging folder
_PLAN = "plan.json"  # next to them
_FOLDER_MODE = 0o700


class FolderPart(NamedTuple):
    """Folder whose entries are part of a backup."""

    name: str
    path: str
    names: frozenset[str] | None = None  # only these entries; `None` means all
    mode: int = 0o700  # of the folder, if it has to be created

    def has_entry(self, name: str) -> bool:
        """Whether an entry of the folder belongs to the part."""
        if self.names is not None:
            return name in self.names
        return not name.startswith(STAGING_PREFIX)


@contextlib.contextmanager
def lock_parts(parts: Sequence[FolderPart]) -> Iterator[None]:
    """Lock the existing folders against writes by other processes. Raises: OSError."""
    with contextlib.ExitStack() as stack:
        for part in parts:
            try:
                folder = stack.enter_context(WritableFolder(part.path))
            except (FileNotFoundError, NotADirectoryError):
                continue
            stack.enter_context(folder.lock())
            with contextlib.suppress(OSError):  # a folder that is read-only
                folder.recover()
        yield


def read_part(part: FolderPart, skipped: list[str]) -> Iterator[FileChunk]:
    """Iterate over the files of a part in path order, in chunks. Raises: OSError.

    Links, special files and names that are not portable are added to `skipped`.
    """
    try:
        root = open_root(part.path)
    except (FileNotFoundError, NotADirectoryError):
        return
    with contextlib.closing(root):
        for name, kind in sorted(root.list_entries()):
            if part.has_entry(name):
                yield from _read_entry(root, (name,), kind, part.name, skipped)


def _read_entry(
    folder: Folder, parts: tuple[str, ...], kind: EntryKind, part: str, skipped: list[str]
) -> Iterator[FileChunk]:
    if kind is EntryKind.FOLDER:
        with folder.open_folder(parts[-1]) as subfolder:
            for name, entry_kind in sorted(subfolder.list_entries()):
                yield from _read_entry(subfolder, (*parts, name), entry_kind, part, skipped)
        return
    text = "/".join(parts)
    shown = f"{part}/{text.encode('utf-8', 'replace').decode()}"
    if kind is not EntryKind.FILE:
        skipped.append(f"{shown}: {'a link' if kind is EntryKind.LINK else 'not a regular file'}")
        return
    try:
        path = RelativePath.parse(text)
        opened = folder.open_file(parts[-1])
    except UnsafePath:
        skipped.append(f"{shown}: its name is not portable")
        return
    except NotAFile:
        skipped.append(f"{shown}: not a regular file")
        return
    try:
        mode, modified = opened.stat.st_mode & 0o777, max(0, opened.stat.st_mtime_ns)
        chunk = FileChunk(part, path, mode, modified, _read_bytes(opened.descriptor))
        while len(chunk.data) == CHUNK_BYTES and (data := _read_bytes(opened.descriptor)):
            yield chunk._replace(is_last=False)
            chunk = chunk._replace(data=data, offset=chunk.offset + CHUNK_BYTES)
        yield chunk
    finally:
        os.close(opened.descriptor)


def _read_bytes(descriptor: int) -> bytes:
    """Read a full chunk; only the end of the file may be shorter."""
    data = os.read(descriptor, CHUNK_BYTES)
    # A read may return less than requested, for example on a network file system.
    while len(data) < CHUNK_BYTES and (more := os.read(descriptor, CHUNK_BYTES - len(data))):
        data += more
    return data


class StagedPart:
    """New entries of a part, in a staging folder inside it."""

    def __init__(self, part: FolderPart, restore_id: str) -> None:
        self.part = part
        self._name = f"{_STAGING_FOLDER}{restore_id}"
        self._path = os.path.join(part.path, self._name)
        self._file: BinaryIO | None = None

    def prepare(self) -> None:
        """Create an empty staging folder. Raises: OSError."""
        self.discard()
        os.makedirs(self.part.path, self.part.mode, exist_ok=True)
        os.makedirs(os.path.join(self._path, _NEW), _FOLDER_MODE)

    def write(self, chunk: FileChunk) -> None:
        """Write a chunk of a file. Raises: OSError.

        Not synced: `sync_disks` syncs everything at once before the restore is committed.
        """
        if self._file is None:
            with contextlib.ExitStack() as stack:
                folder = stack.enter_context(WritableFolder(os.path.join(self._path, _NEW)))
                for name in chunk.path.parts[:-1]:
                    folder = stack.enter_context(folder.open_folder(name, create=True))
                self._file = folder.open_new_file(chunk.path.parts[-1])
        self._file.write(chunk.data)
        if chunk.is_last:
            self._file.flush()
            descriptor = self._file.fileno()
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, chunk.mode)
            times = (chunk.modified, chunk.modified)
            os.utime(descriptor if os.utime in os.supports_fd else self._file.name, ns=times)
            self._file.close()
            self._file = None

    def save_plan(self, removed: Collection[str]) -> None:
        """Record that the staged entries will replace the present ones. Raises: OSError.

        Entries in `removed` that are not staged will be removed. The recorded inode numbers show
        later which entries have already been moved into place.
        """
        with WritableFolder(self._path) as staging:
            with staging.open_folder(_NEW) as new:
                inodes = {name: new.stat(name).st_ino for name in new.list_names()}
            plan = {"put": inodes, "remove": sorted({*removed} - inodes.keys())}
            staging.write_file(_PLAN, json.dumps(plan).encode(), 0o600)

    def apply(self) -> None:
        """Move the new entries into place and remove the old ones. Idempotent.

        Call `discard` afterwards. Raises: OSError.
        """
        plan = self._read_plan()
        with WritableFolder(self.part.path) as folder:
            for name, inode in plan.put.items():
                self._put(folder, name, inode)
            for name in plan.removed:
                if folder.entry_kind(name) is not None:
                    folder.remove_atomically(name)
            folder.sync()

    def discard(self) -> bool:
        """Remove the staging folder; return whether it is gone."""
        if self._file is not None:
            self._file.close()
            self._file = None
        # The plan first: without it, `apply` does nothing.
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._path, _PLAN))
        # One by one: `rmtree` has an object in memory for each of maybe many entries.
        with contextlib.suppress(OSError):
            for name in os.listdir(os.path.join(self._path, _NEW)):
                shutil.rmtree(os.path.join(self._path, _NEW, name), ignore_errors=True)
        shutil.rmtree(self._path, ignore_errors=True)
        return not os.path.lexists(self._path)

    def _put(self, folder: WritableFolder, name: str, inode: int) -> None:
        staged = os.path.join(self._name, _NEW, name)
        kind = folder.entry_kind(name)
        if kind is not None and folder.stat(name).st_ino == inode:
            return
        if kind is None or kind is folder.entry_kind(staged) is EntryKind.FILE:
            folder.rename(staged, name)
        else:
            folder.exchange_folder(name, staged)
            # Only without an atomic swap: the old folder has a name of its own.
            folder.remove_replaced(name)

    def _read_plan(self) -> _StagingPlan:
        try:
            with open(os.path.join(self._path, _PLAN), "rb") as file:
                data = json.loads(file.read())
        except FileNotFoundError:  # `apply` was killed after its last step
            return _StagingPlan({}, ())
        return _StagingPlan(data["put"], data["remove"])


class _StagingPlan(NamedTuple):
    put: Mapping[str, int]  # inode numbers of the staged entries, by name
    removed: Sequence[str]


class RestoreJournal:
    """Record of a restore that is being committed, in the data folder."""

    def __init__(self, data_directory: str) -> None:
        self._folder = data_directory
        self._path = os.path.join(data_directory, JOURNAL)

    def exists(self) -> bool:
        """Whether a restore is running, or was interrupted."""
        return os.path.lexists(self._path)

    def write(self, restore_id: str, parts: Sequence[FolderPart]) -> None:
        """Record a restore that is about to be committed. Raises: OSError."""
        data = {"id": restore_id, "parts": {part.name: part.path for part in parts}}
        with WritableFolder(self._folder) as folder:
            folder.write_file(JOURNAL, json.dumps(data).encode(), 0o600)

    def read(self) -> tuple[str, list[FolderPart]] | None:
        """Return the id and parts of the recorded restore; `None` if there is none.

        Raises: OSError.
        """
        try:
            with open(self._path, "rb") as file:
                data = json.loads(file.read())
        except FileNotFoundError:
            return None
        return data["id"], [FolderPart(name, path) for name, path in data["parts"].items()]

    def delete(self) -> None:
        """Delete the record. Raises: OSError."""
        with WritableFolder(self._folder) as folder, contextlib.suppress(FileNotFoundError):
            folder.remove(JOURNAL)
            folder.sync()


def sync_disks() -> None:
    """Write all cached data to disk, which is faster than syncing many files."""
    if hasattr(os, "sync"):
        os.sync()
