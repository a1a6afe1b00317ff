"""Our lock: for each skill that was added to a project or a home, where it came from and its files.

The lock is the outermost thing to hold: folders of skills are locked while it is open, never the
other way round, and its own folder is not locked again: that would wait for itself.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, cast

from skillhall._internal.fs.handles import is_beneath, open_root, read_beneath
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.skill.bundle import RelativePath, is_version_controlled
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.ref import ArchiveRef, LocalRef, SourceRef, parse_reference
from skillhall._internal.strict_json import NotJson, parse_json, render_json
from skillhall.errors import (
    LockInvalid,
    NotAFile,
    SkillFileNotFound,
    SkillNotFound,
    SourceRejected,
    TooLarge,
    UnsafePath,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from skillhall._internal.skill.bundle import Bundle


VERSION: Final = 1
PROJECT_LOCK: Final = "skillhall-lock.json"  # in the project's own folder
USER_LOCK: Final = ".skillhall-lock.json"  # in the folder `user_lock_folder` gives
MAX_LOCK: Final = 4 * 1024 * 1024  # bytes; ten thousand skills of ordinary size

Mode: TypeAlias = Literal["100644", "100755"]  # as git writes them
TargetKind: TypeAlias = Literal["copy", "link"]
More: TypeAlias = Mapping[str, object]  # fields that we do not know, written back as they were

_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHOWN = 100  # characters of a wrong text that a message repeats
_UPGRADE = "a newer Skillhall wrote it: update yours"


@dataclass(frozen=True, slots=True)
class LockedFile:
    """One file of a skill as it was added."""

    path: str
    sha256: str
    size: int
    mode: Mode
    more: More = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """One more place that holds the skill: a copy of its own, or a link to the first one."""

    path: str
    kind: TargetKind
    more: More = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LockEntry:
    """Where one skill came from, what it held, and where else it was put."""

    source: str  # the text that was asked for
    path: str  # the skill's folder in that source; "" is all of it
    commit: str  # what the source was at; "" if it has no history
    digest: str  # of all files together
    files: tuple[LockedFile, ...]
    targets: tuple[Target, ...] = ()  # beside the place that is the entry's key
    pinned: bool = False  # whether updates leave it alone
    name: str = ""  # in its frontmatter; its folder may be called otherwise
    more: More = field(default_factory=dict)

    def copies(self) -> list[str]:
        """The places beside the key that hold files of their own."""
        return [target.path for target in self.targets if target.kind == "copy"]

    def links(self) -> list[str]:
        """The places that lead to the key."""
        return [target.path for target in self.targets if target.kind == "link"]


@dataclass(frozen=True, slots=True)
class Lock:
    """The entries by the place of the first copy, relative to the project or home."""

    entries: Mapping[str, LockEntry] = field(default_factory=dict)
    more: More = field(default_factory=dict)


@dataclass(slots=True)
class LockEdit:
    """A lock that is being changed: `entries` may be set, replaced and deleted by key.

    `save` writes them before the block ends. Raises: LockInvalid, NotAFile, OSError.
    """

    entries: dict[str, LockEntry]
    save: Callable[[], None] = lambda: None


def user_lock_folder(home: str) -> str:
    """The folder of the user's lock; its keys are relative to `home` all the same."""
    return os.path.join(home, ".agents")


def locked_files(bundle: Bundle) -> tuple[LockedFile, ...]:
    """The files of a bundle as a lock holds them, in path order."""
    return tuple(
        LockedFile(
            path,
            file.digest().removeprefix("sha256:"),
            file.size,
            "100755" if file.executable else "100644",
        )
        for path, file in sorted(bundle.files.items())
    )


def holds(entry: LockEntry, bundle: Bundle) -> bool:
    """Whether the bundle is what was locked, modes too."""
    plain = (replace(file, more={}) for file in sorted(entry.files, key=lambda f: f.path))
    return locked_files(bundle) == tuple(plain)


def place_of(text: str) -> str:
    """The text as a place that may hold a skill: plain, relative, and not of version control.

    Raises: UnsafePath.
    """
    path = RelativePath.parse(text)
    if is_version_controlled(path.text):
        raise UnsafePath(text, "it belongs to version control")
    return path.text


def set_digest(files: Iterable[LockedFile]) -> str:
    """The digest of all files together, equal to `adding.digest_of` of their bundle."""
    ordered = sorted(files, key=lambda file: file.path)
    lines = (f"{file.path}\0{file.size}\0sha256:{file.sha256}\n" for file in ordered)
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def portable_source(reference: SourceRef, root: str, base: str) -> str:
    """The text of the reference for a lock at `root`, good in a checkout elsewhere if it can be.

    A folder below `root`, and one that was given relative to `base`, is written relative to `root`.
    """
    if not isinstance(reference, LocalRef | ArchiveRef) or reference.path.startswith("~"):
        return reference.text
    path = Root.of(reference.path, base).path
    if os.path.isabs(reference.path) and not is_beneath(path, os.path.abspath(root)):
        return reference.text
    try:
        relative = os.path.relpath(path, root).replace(os.sep, "/")
    except ValueError:  # another drive
        return reference.text
    return relative if relative.startswith(".") else f"./{relative}"


# Files


def read_lock(folder: str, name: str = PROJECT_LOCK) -> Lock:
    """The lock in `folder`; an empty one if there is none. Raises: LockInvalid, OSError."""
    try:
        root = open_root(folder)
    except FileNotFoundError:
        return Lock()
    try:
        data = read_beneath(root, RelativePath.parse(name), MAX_LOCK)
    except SkillFileNotFound:
        return Lock()
    except TooLarge:
        raise LockInvalid(name, f"it is larger than {MAX_LOCK} bytes") from None
    except (NotAFile, UnsafePath):
        raise LockInvalid(name, "it is not a regular file that can be read") from None
    finally:
        root.close()
    return parse_lock(data, name)


@contextmanager
def changing_lock(folder: str, name: str = PROJECT_LOCK) -> Iterator[LockEdit]:
    """The lock in `folder`, kept from other processes and written when the block ends well.

    Nothing is written if nothing changed. Raises: LockInvalid, NotAFile, OSError.
    """
    os.makedirs(folder, exist_ok=True)
    with WritableFolder(folder) as base, base.locked():
        base.recover()
        saved = read_lock(folder, name)
        edit = LockEdit(dict(saved.entries))

        def save() -> None:
            nonlocal saved
            after = replace(saved, entries=dict(edit.entries))
            if after != saved:
                data = render_lock(after)
                parse_lock(data, name)  # what we could not read again is not written
                base.put(name, data, base.mode(name) if base.kind(name) else 0o644)
                saved = after

        edit.save = save
        yield edit
        save()


def render_lock(lock: Lock) -> bytes:
    """The lock as JSON: the same bytes for the same entries, in whatever order they came."""
    skills = {key: _entry_fields(entry) for key, entry in lock.entries.items()}
    return render_json({**lock.more, "version": VERSION, "skills": skills}, sort=True) + b"\n"


def _entry_fields(entry: LockEntry) -> dict[str, object]:
    return {
        **entry.more,
        "name": entry.name,
        "source": entry.source,
        "path": entry.path,
        "commit": entry.commit,
        "digest": entry.digest,
        "files": [_file_fields(file) for file in sorted(entry.files, key=lambda f: f.path)],
        "targets": [
            {**one.more, "path": one.path, "kind": one.kind}
            for one in sorted(entry.targets, key=lambda t: t.path)
        ],
        "pinned": entry.pinned,
    }


def _file_fields(file: LockedFile) -> dict[str, object]:
    known = {"path": file.path, "sha256": file.sha256, "size": file.size, "mode": file.mode}
    return {**file.more, **known}


# Reading


def parse_lock(data: bytes, name: str = PROJECT_LOCK) -> Lock:
    """The lock that the bytes hold; `name` is the file that messages speak of.

    Raises: LockInvalid.
    """
    if len(data) > MAX_LOCK:
        raise LockInvalid(name, f"it is larger than {MAX_LOCK} bytes")
    try:
        value = parse_json(data, unique=True)
    except NotJson as error:
        raise LockInvalid(name, str(error)) from None
    lock = _Object.of(value, name, "")
    version = lock.number("version")
    if version != VERSION:
        hint = _UPGRADE if version > VERSION else ""
        raise LockInvalid(name, f"its version is {version}, not {VERSION}", hint)
    skills = _Object.of(lock.required("skills"), name, "skills")
    entries = {key: _entry(key, skills) for key in skills.fields}
    return Lock(entries, lock.more("version", "skills"))


class _Object(NamedTuple):
    """One JSON object of a lock, and where it stands."""

    file: str
    where: str
    fields: dict[str, object]

    @classmethod
    def of(cls, value: object, file: str, where: str) -> _Object:
        if not isinstance(value, dict):
            raise LockInvalid(file, f"{where or 'it'} is not an object")
        return cls(file, where, value)

    def wrong(self, name: str, problem: str) -> LockInvalid:
        place = f"{self.where}.{name}" if self.where else name
        return LockInvalid(self.file, f"{place} {problem}")

    def required(self, name: str) -> object:
        if name not in self.fields:
            raise self.wrong(name, "is missing")
        return self.fields[name]

    def text(self, name: str) -> str:
        value = self.required(name)
        if not isinstance(value, str):
            raise self.wrong(name, "is not text")
        return value

    def matching(self, name: str, pattern: re.Pattern[str]) -> str:
        value = self.text(name)
        if not pattern.fullmatch(value):
            raise self.wrong(name, f"is not of its form: {value[:_SHOWN]!r}")
        return value

    def one_of(self, name: str, *known: str) -> str:
        value = self.text(name)
        if value not in known:
            raise self.wrong(name, f"is none of {', '.join(known)}: {value[:_SHOWN]!r}")
        return value

    def number(self, name: str) -> int:
        value = self.required(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong(name, "is not a whole number")
        return value

    def flag(self, name: str) -> bool:
        value = self.fields.get(name, False)
        if not isinstance(value, bool):
            raise self.wrong(name, "is neither true nor false")
        return value

    def path(self, name: str) -> str:
        return self.plain(self.text(name), name)

    def place(self, text: str, name: str) -> str:
        """The text, if a skill may stand there."""
        try:
            place_of(text)
        except UnsafePath as error:
            raise self.wrong(name, f"is no path to write to: {error.reason}") from None
        return self.plain(text, name)

    def plain(self, text: str, name: str) -> str:
        """The text, if it is a plain relative path in its shortest form."""
        try:
            path = RelativePath.parse(text).text
        except UnsafePath as error:
            raise self.wrong(name, f"is no path to write to: {error.reason}") from None
        if path != text:
            raise self.wrong(name, "is not written in its shortest form")
        return path

    def objects(self, name: str) -> list[_Object]:
        values = self.required(name)
        if not isinstance(values, list):
            raise self.wrong(name, "is not a list")
        where = f"{self.where}.{name}"
        return [_Object.of(one, self.file, f"{where}[{at}]") for at, one in enumerate(values)]

    def more(self, *known: str) -> More:
        return {name: value for name, value in self.fields.items() if name not in known}


def _entry(key: str, skills: _Object) -> LockEntry:
    skills.place(key, f"[{key[:_SHOWN]!r}]")
    one = _Object.of(skills.fields[key], skills.file, f"{skills.where}[{key!r}]")
    entry = LockEntry(
        source=_source(one),
        path=one.path("path") if one.text("path") else "",
        commit=one.matching("commit", _COMMIT),
        digest=one.matching("digest", _DIGEST),
        files=tuple(_file(file) for file in one.objects("files")),
        targets=tuple(_target(target) for target in one.objects("targets")),
        pinned=one.flag("pinned"),
        name=one.text("name") if "name" in one.fields else "",
        more=one.more("name", "source", "path", "commit", "digest", "files", "targets", "pinned"),
    )
    _refuse_repetition(one, "files", [file.path for file in entry.files])
    _refuse_repetition(one, "targets", [key, *(target.path for target in entry.targets)])
    if set_digest(entry.files) != entry.digest:
        raise one.wrong("digest", "is not that of its files")
    return entry


def _source(one: _Object) -> str:
    text = one.text("source")
    try:
        parse_reference(text, loopback_http=True)
    except SourceRejected as error:
        raise one.wrong("source", f"names no source: {error.problem}") from None
    return text


def _file(one: _Object) -> LockedFile:
    return LockedFile(
        one.path("path"),
        one.matching("sha256", _SHA256),
        one.number("size"),
        cast("Mode", one.one_of("mode", "100644", "100755")),
        one.more("path", "sha256", "size", "mode"),
    )


def _target(one: _Object) -> Target:
    kind = cast("TargetKind", one.one_of("kind", "copy", "link"))
    return Target(one.place(one.text("path"), "path"), kind, one.more("path", "kind"))


def _refuse_repetition(one: _Object, name: str, paths: list[str]) -> None:
    if len(set(paths)) < len(paths):
        raise one.wrong(name, "names one place twice")


def keys_called(entries: Mapping[str, LockEntry], names: Iterable[str]) -> list[str]:
    """The keys of the skills with these folder names or places, in order; all if none is given.

    Raises: SkillNotFound.
    """
    wanted = list(names)
    found: dict[str, None] = {}
    for name in wanted:
        keys = [key for key in entries if name in (key, key.rpartition("/")[2])]
        if not keys:
            known = sorted(key.rpartition("/")[2] for key in entries)
            raise SkillNotFound(name, get_close_matches(name, known))
        found.update(dict.fromkeys(keys))
    return sorted(found if wanted else entries)
