"""What was changed in a scope, a project or a home, so that it can be undone: one file a change.

The files' contents are not here but in a `ContentStore`; a change names them by their digests.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.fs.handles import Place, opened_place, read_file
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import NotAFile, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Verb: TypeAlias = Literal["add", "update", "remove", "rollback"]

MAX_CHANGES = 50  # of one scope; older ones are forgotten
MAX_SIZE = 16 * 1024 * 1024  # bytes of one change: a hundred skills with a thousand files each
FORMAT = 1
_VERBS: dict[str, Verb] = {
    "add": "add",
    "update": "update",
    "remove": "remove",
    "rollback": "rollback",
}
_FILE, _FOLDER = 0o600, 0o700
_SCOPE = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(r"([0-9]{8,})-[0-9a-f]{8}\.json")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ANY_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


class Held(NamedTuple):
    """One file of a skill: where its bytes are in the store, and whether it can be run."""

    sha256: str
    executable: bool


class Entry(NamedTuple):
    """One skill before and after a change: its files by path, `None` if it was not there."""

    before: Mapping[str, Held] | None
    after: Mapping[str, Held] | None
    lock_before: str | None = None  # its entry in the lock file, as JSON text
    lock_after: str | None = None


class Change(NamedTuple):
    """What one command did."""

    id: str
    verb: Verb
    time: str
    entries: Mapping[str, Entry]  # by the key of the skill

    def digests(self) -> set[str]:
        """The contents that undoing or repeating the change needs."""
        sides = (side for one in self.entries.values() for side in (one.before, one.after))
        return {held.sha256 for side in sides if side is not None for held in side.values()}


class Journal(NamedTuple):
    """The changes that can be read, newest first, and the names of files that cannot."""

    changes: tuple[Change, ...]
    damaged: tuple[str, ...]


class History:
    """The changes of one scope, named by the path of its root, below a data folder."""

    def __init__(self, directory: str, scope: str) -> None:
        self._parent = os.path.join(directory, "history")
        self._name = hashlib.sha256(os.fsencode(scope)).hexdigest()[:16]
        self._scope = scope

    def record(self, change: Change) -> None:
        """Write the change down; the oldest ones give way.

        Raises: OSError, ValueError if the change could not be read back.
        """
        data = _encoded(change, self._scope)
        if len(data) > MAX_SIZE or _decoded(data, self._scope) != change:
            raise ValueError("the change cannot be written down")
        os.makedirs(self._path, _FOLDER, exist_ok=True)
        with WritableFolder(self._path) as folder, folder.locked():
            folder.recover()
            known = _in_order(folder.names())
            number = _number(known[-1]) + 1 if known else 1
            # Where locks are missing, two changes may take one number, and both are kept.
            mark = hashlib.sha256(change.id.encode(errors="surrogatepass")).hexdigest()[:8]
            folder.put(f"{number:08}-{mark}.json", data, _FILE)
            for name in known[: max(0, len(known) + 1 - MAX_CHANGES)]:
                folder.remove(name)

    def read(self) -> Journal:
        """All that is known. Raises: OSError if the folder is there and cannot be read."""
        changes, damaged = [], []
        for name, change in self._files():
            if change is None:
                damaged.append(name)
            else:
                changes.append(change)
        return Journal(tuple(changes[:MAX_CHANGES]), tuple(damaged))

    def changes(self) -> tuple[Change, ...]:
        """The changes that can be read, newest first. Raises: OSError."""
        return self.read().changes

    def last(self) -> Change | None:
        """The newest change that can be read. Raises: OSError."""
        return next((change for _, change in self._files() if change is not None), None)

    def drop(self, change_id: str) -> None:
        """Forget a change, as after it was undone. Raises: OSError."""
        if not os.path.isdir(self._path):
            return
        with WritableFolder(self._path) as folder, folder.locked():
            for name, change in list(self._files()):
                if change is not None and change.id == change_id:
                    folder.remove(name)
            folder.sync()

    @property
    def _path(self) -> str:
        return os.path.join(self._parent, self._name)

    def _files(self) -> Iterator[tuple[str, Change | None]]:
        """Each file, newest first, and the change in it; `None` if it is damaged."""
        try:
            names = _in_order(os.listdir(self._path))
        except FileNotFoundError:
            return
        for name in reversed(names):
            try:
                with opened_place(Place(self._parent, self._name)) as folder:
                    data = read_file(folder, name, MAX_SIZE)
            except FileNotFoundError:  # forgotten meanwhile
                continue
            except (OSError, NotAFile, TooLarge):
                yield name, None
            else:
                yield name, _decoded(data, self._scope)


def referenced(directory: str) -> set[str]:
    """Every digest that the changes of any scope below the data folder name, damaged ones too.

    Raises: OSError, NotAFile, TooLarge if one cannot be read: nobody knows then what may be swept.
    """
    parent = os.path.join(directory, "history")
    digests: set[str] = set()
    for scope in filter(_SCOPE.fullmatch, os.listdir(parent) if os.path.isdir(parent) else ()):
        with opened_place(Place(parent, scope)) as folder:
            for name in _in_order([name for name, _ in folder.entries()]):
                with contextlib.suppress(FileNotFoundError):  # forgotten meanwhile
                    data = read_file(folder, name, MAX_SIZE)
                    digests |= digests_in(data)
    return digests


def digests_in(data: bytes) -> set[str]:
    """Every SHA-256 in the text of a file."""
    return {found.decode() for found in _ANY_DIGEST.findall(data)}


class Scope(NamedTuple):
    """A project or a home with a history, and the time of its last change."""

    path: str
    changed: float  # seconds since 1970


def known_scopes(directory: str) -> dict[str, Scope]:
    """The scopes that have a history below the data folder, by the names of their folders there.

    One whose changes are all damaged is not among them. Raises: OSError, NotAFile, TooLarge.
    """
    parent = os.path.join(directory, "history")
    found = {}
    for name in filter(_SCOPE.fullmatch, os.listdir(parent) if os.path.isdir(parent) else ()):
        with contextlib.suppress(FileNotFoundError), opened_place(Place(parent, name)) as folder:
            times = []
            for file in reversed(_in_order([entry for entry, _ in folder.entries()])):
                times.append(folder.peek(file).st_mtime)
                if (path := _scope_of(read_file(folder, file, MAX_SIZE))) is not None:
                    found[name] = Scope(path, max(times))
                    break
    return found


def forget_scope(directory: str, name: str) -> None:
    """Remove the history in that folder. Raises: OSError."""
    with WritableFolder(os.path.join(directory, "history")) as parent, parent.locked():
        parent.discard(name)


def _scope_of(data: bytes) -> str | None:
    try:
        return _text(json.loads(data)["scope"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _in_order(names: list[str]) -> list[str]:
    """The files that hold changes, the oldest first."""
    return sorted((name for name in names if _NAME.fullmatch(name)), key=lambda n: (_number(n), n))


def _number(name: str) -> int:
    return int(name.partition("-")[0])


def _encoded(change: Change, scope: str) -> bytes:
    entries = {
        key: {**entry._asdict(), "before": _pairs(entry.before), "after": _pairs(entry.after)}
        for key, entry in change.entries.items()
    }
    whole = {"format": FORMAT, "scope": scope, **change._asdict(), "entries": entries}
    return f"{json.dumps(whole, indent=1)}\n".encode()


def _pairs(files: Mapping[str, Held] | None) -> dict[str, tuple[str, bool]] | None:
    return (
        None
        if files is None
        else {path: (held.sha256, held.executable) for path, held in files.items()}
    )


def _decoded(data: bytes, scope: str) -> Change | None:
    """The change in a file of this scope; `None` if it is not one, or damaged."""
    try:
        whole = json.loads(data)
        if (whole["format"], whole["scope"]) != (FORMAT, scope):
            return None
        entries = {key: _entry(value) for key, value in whole["entries"].items()}
        return Change(_text(whole["id"]), _verb(whole["verb"]), _text(whole["time"]), entries)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, UnsafePath):
        return None


def _entry(value: dict[str, object]) -> Entry:
    return Entry(
        _files(value["before"]),
        _files(value["after"]),
        None if value["lock_before"] is None else _text(value["lock_before"]),
        None if value["lock_after"] is None else _text(value["lock_after"]),
    )


def _files(value: object) -> dict[str, Held] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise TypeError
    return {_path(path): _held(*pair) for path, pair in value.items()}


def _path(text: str) -> str:
    if RelativePath.parse(text).text != text:
        raise ValueError
    return text


def _held(sha256: object, executable: object) -> Held:
    if not _DIGEST.fullmatch(_text(sha256)) or not isinstance(executable, bool):
        raise ValueError
    return Held(_text(sha256), executable)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _verb(value: object) -> Verb:
    return _VERBS[_text(value)]
