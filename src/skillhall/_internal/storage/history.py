"""History of changes in a scope (a project or a home), for undo.

Each change is a file. Contents are in a `ContentStore`; a change refers to them by digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.fs.handles import FolderHandle, open_folder_at, read_file
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import NotAFile, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Verb: TypeAlias = Literal["add", "update", "remove", "rollback"]

MAX_CHANGES = 50  # per scope; older ones are deleted
MAX_SIZE = 16 * 1024 * 1024  # bytes per change; enough for 100 skills with 1000 files each
FORMAT = 1
_VERBS: dict[str, Verb] = {
    "add": "add",
    "update": "update",
    "remove": "remove",
    "rollback": "rollback",
}
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
_SCOPE_NAME = re.compile(r"[0-9a-f]{16}")
_CHANGE_FILE_NAME = re.compile(r"([0-9]{8,})-[0-9a-f]{8}\.json")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ANY_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


class HistoryFile(NamedTuple):
    """File of a skill: the digest of its content, and whether it is executable."""

    sha256: str
    executable: bool


class HistoryEntry(NamedTuple):
    """Files of a skill before and after a change; `None` if it did not exist."""

    before: Mapping[str, HistoryFile] | None
    after: Mapping[str, HistoryFile] | None
    lock_before: str | None = None  # the skill's entry in the lock file, as JSON
    lock_after: str | None = None


class HistoryChange(NamedTuple):
    """Change made by one command."""

    id: str
    verb: Verb
    time: str
    entries: Mapping[str, HistoryEntry]  # by the key of the skill
    actor: str = ""  # who made it on a server

    def digests(self) -> set[str]:
        """Return the digests that are needed to undo or redo the change."""
        versions = (files for e in self.entries.values() for files in (e.before, e.after))
        return {file.sha256 for files in versions if files is not None for file in files.values()}


class Journal(NamedTuple):
    """Readable changes, newest first, and the names of damaged files."""

    changes: tuple[HistoryChange, ...]
    damaged: tuple[str, ...]


class History:
    """Changes of one scope, stored below a data directory; `scope` is its root's path."""

    def __init__(self, directory: str, scope: str) -> None:
        self._parent = os.path.join(directory, "history")
        self._name = scope_folder_name(scope)
        self._path = os.path.join(self._parent, self._name)
        self._scope = scope

    def record(self, change: HistoryChange) -> None:
        """Record a change and delete the oldest ones beyond the limit.

        Raises: OSError, ValueError if the change is too large or could not be read back.
        """
        data = _serialize_change(change, self._scope)
        if len(data) > MAX_SIZE or _parse_change(data, self._scope) != change:
            raise ValueError("the change cannot be recorded: it is too large or invalid")
        os.makedirs(self._path, _FOLDER_MODE, exist_ok=True)
        with WritableFolder(self._path) as folder, folder.lock():
            folder.recover()
            names = _sort_change_files(folder.list_names())
            number = _parse_file_number(names[-1]) + 1 if names else 1
            # Folders are not locked on Windows, so two changes may get the same number there. The
            # suffix keeps both files.
            suffix = hashlib.sha256(change.id.encode(errors="surrogatepass")).hexdigest()[:8]
            folder.write_file(f"{number:08}-{suffix}.json", data, _FILE_MODE)
            for name in names[: max(0, len(names) + 1 - MAX_CHANGES)]:
                folder.remove(name)

    def read(self) -> Journal:
        """Read all changes. Raises: OSError if the folder exists and cannot be read."""
        changes, damaged = [], []
        for name, change in self._read_files():
            if change is None:
                damaged.append(name)
            else:
                changes.append(change)
        return Journal(tuple(changes[:MAX_CHANGES]), tuple(damaged))

    def changes(self) -> tuple[HistoryChange, ...]:
        """Return the changes that can be read, newest first. Raises: OSError."""
        return self.read().changes

    def last(self) -> HistoryChange | None:
        """Return the newest readable change, or `None`. Raises: OSError."""
        return next((change for _, change in self._read_files() if change is not None), None)

    def delete(self, change_id: str) -> None:
        """Delete a change, for example after it was undone. Raises: OSError."""
        if not os.path.isdir(self._path):
            return
        with WritableFolder(self._path) as folder, folder.lock():
            for name, change in list(self._read_files()):
                if change is not None and change.id == change_id:
                    folder.remove(name)
            folder.sync()

    def _read_files(self) -> Iterator[tuple[str, HistoryChange | None]]:
        """Yield each file name, newest first, with its change; `None` if damaged."""
        try:
            names = _sort_change_files(os.listdir(self._path))
        except FileNotFoundError:
            return
        for name in reversed(names):
            try:
                with open_folder_at(FolderHandle(self._parent, self._name)) as folder:
                    data = read_file(folder, name, MAX_SIZE)
            except FileNotFoundError:  # deleted by another process
                continue
            except (OSError, NotAFile, TooLarge):
                yield name, None
            else:
                yield name, _parse_change(data, self._scope)


def scope_folder_name(scope: str) -> str:
    """Return the name of a scope's folder below `history`."""
    return hashlib.sha256(os.fsencode(scope)).hexdigest()[:16]


def move_change(data: bytes, scope: str) -> bytes:
    """Replace the scope in a change's file; damaged data is returned as it is."""
    try:
        value = json.loads(data)
        value["scope"] = scope
    except (ValueError, TypeError, RecursionError):
        return data
    return f"{json.dumps(value, indent=1)}\n".encode()


def find_referenced_digests(directory: str) -> set[str]:
    """Return all digests that changes of any scope refer to, even damaged changes.

    Raises: OSError, NotAFile, TooLarge if a change cannot be read; a sweep is then unsafe.
    """
    parent = os.path.join(directory, "history")
    digests: set[str] = set()
    for scope in filter(_SCOPE_NAME.fullmatch, os.listdir(parent) if os.path.isdir(parent) else ()):
        with open_folder_at(FolderHandle(parent, scope)) as folder:
            for name in _sort_change_files([name for name, _ in folder.list_entries()]):
                with contextlib.suppress(FileNotFoundError):  # deleted by another process
                    data = read_file(folder, name, MAX_SIZE)
                    digests |= find_digests(data)
    return digests


def find_digests(data: bytes) -> set[str]:
    """Return every SHA-256 digest in the text of a file."""
    return {digest.decode() for digest in _ANY_DIGEST.findall(data)}


class HistoryScope(NamedTuple):
    """Project or home with a history, and the time of its last change."""

    path: str
    changed_at: float  # seconds since 1970


def list_scopes(directory: str) -> dict[str, HistoryScope]:
    """Return the scopes with a history, by folder name.

    Scopes with only damaged changes are omitted. Raises: OSError, NotAFile, TooLarge.
    """
    parent = os.path.join(directory, "history")
    scopes = {}
    for name in filter(_SCOPE_NAME.fullmatch, os.listdir(parent) if os.path.isdir(parent) else ()):
        with (
            contextlib.suppress(FileNotFoundError),
            open_folder_at(FolderHandle(parent, name)) as folder,
        ):
            times = []
            for file in reversed(_sort_change_files([entry for entry, _ in folder.list_entries()])):
                # The time of a damaged change counts, too.
                times.append(folder.stat(file).st_mtime)
                data = read_file(folder, file, MAX_SIZE)
                with contextlib.suppress(ValueError, TypeError, LookupError, RecursionError):
                    path = _require_text(json.loads(data)["scope"])
                    scopes[name] = HistoryScope(path, max(times))
                    break
    return scopes


def delete_scope(directory: str, name: str) -> None:
    """Delete the history of the scope with this folder name. Raises: OSError."""
    with WritableFolder(os.path.join(directory, "history")) as parent, parent.lock():
        parent.remove_atomically(name)


def _sort_change_files(names: list[str]) -> list[str]:
    """Return the names of change files, oldest first."""
    return sorted(
        filter(_CHANGE_FILE_NAME.fullmatch, names),
        key=lambda name: (_parse_file_number(name), name),
    )


def _parse_file_number(name: str) -> int:
    return int(name.partition("-")[0])


def _serialize_change(change: HistoryChange, scope: str) -> bytes:
    data = {"format": FORMAT, "scope": scope, **change._asdict()}
    # `json` writes each `HistoryFile`, being a tuple, as a list.
    data["entries"] = {key: entry._asdict() for key, entry in change.entries.items()}
    if not change.actor:
        del data["actor"]
    return f"{json.dumps(data, indent=1)}\n".encode()


def _parse_change(data: bytes, scope: str) -> HistoryChange | None:
    """Parse a change; `None` if it is damaged or belongs to another scope."""
    try:
        value = json.loads(data)
        if (value["format"], value["scope"]) != (FORMAT, scope):
            return None
        entries = {
            key: HistoryEntry(
                _parse_files(entry["before"]),
                _parse_files(entry["after"]),
                None if entry["lock_before"] is None else _require_text(entry["lock_before"]),
                None if entry["lock_after"] is None else _require_text(entry["lock_after"]),
            )
            for key, entry in value["entries"].items()
        }
        verb = _VERBS[_require_text(value["verb"])]
        actor = _require_text(value.get("actor", ""))
        return HistoryChange(
            _require_text(value["id"]), verb, _require_text(value["time"]), entries, actor
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, UnsafePath):
        return None


def _parse_files(value: dict[str, tuple[object, object]] | None) -> dict[str, HistoryFile] | None:
    """Parse the files of one version; `None` if the skill did not exist.

    Raises: ValueError, TypeError, AttributeError, UnsafePath.
    """
    if value is None:
        return None
    files = {}
    for path, (sha256, executable) in value.items():
        digest = _require_text(sha256)
        if not _DIGEST.fullmatch(digest) or RelativePath.parse(path).text != path:
            raise ValueError(path)
        if not isinstance(executable, bool):
            raise TypeError(path)
        files[path] = HistoryFile(digest, executable)
    return files


def _require_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
