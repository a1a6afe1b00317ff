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

from skillhall._internal.fs.handles import is_inside, open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.skill.bundle import RelativePath, is_in_version_control_folder
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.ref import ArchiveRef, LocalRef, SourceRef, parse_source_ref
from skillhall._internal.strict_json import InvalidJson, parse_json, render_json
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
MAX_LOCK_SIZE: Final = 4 * 1024 * 1024  # bytes; ten thousand skills of ordinary size

FileMode: TypeAlias = Literal["100644", "100755"]  # as git writes them
TargetKind: TypeAlias = Literal["copy", "link"]
UnknownFields: TypeAlias = Mapping[
    str, object
]  # fields that we do not know, written back as they were

_COMMIT_PATTERN = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?")
_DIGEST_PATTERN = re.compile(r"sha256:[0-9a-f]{64}")
_SHA256_PATTERN = re.compile(r"[0-9a-f]{64}")
_MAX_QUOTED = 100  # characters of a wrong text that a message repeats
_UPGRADE_HINT = "a newer Skillhall wrote it: update yours"


@dataclass(frozen=True, slots=True)
class LockedFile:
    """One file of a skill as it was added."""

    path: str
    sha256: str
    size: int
    mode: FileMode
    unknown_fields: UnknownFields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LockTarget:
    """One more place that holds the skill: a copy of its own, or a link to the first one."""

    path: str
    kind: TargetKind
    unknown_fields: UnknownFields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LockEntry:
    """Where one skill came from, what it held, and where else it was put."""

    source: str  # the text that was asked for
    path: str  # the skill's folder in that source; "" is all of it
    commit: str  # what the source was at; "" if it has no history
    digest: str  # of all files together
    files: tuple[LockedFile, ...]
    targets: tuple[LockTarget, ...] = ()  # beside the place that is the entry's key
    pinned: bool = False  # whether updates leave it alone
    name: str = ""  # in its frontmatter; its folder may be called otherwise
    unknown_fields: UnknownFields = field(default_factory=dict)

    def get_copy_paths(self) -> list[str]:
        """The places beside the key that hold files of their own."""
        return [target.path for target in self.targets if target.kind == "copy"]

    def get_link_paths(self) -> list[str]:
        """The places that lead to the key."""
        return [target.path for target in self.targets if target.kind == "link"]


@dataclass(frozen=True, slots=True)
class Lock:
    """The entries by the place of the first copy, relative to the project or home."""

    entries: Mapping[str, LockEntry] = field(default_factory=dict)
    unknown_fields: UnknownFields = field(default_factory=dict)


@dataclass(slots=True)
class LockEdit:
    """A lock that is being changed: `entries` may be set, replaced and deleted by key.

    `save` writes them before the block ends. Raises: LockInvalid, NotAFile, OSError.
    """

    entries: dict[str, LockEntry]
    save: Callable[[], None] = lambda: None


def get_user_lock_folder(home: str) -> str:
    """The folder of the user's lock; its keys are relative to `home` all the same."""
    return os.path.join(home, ".agents")


def to_locked_files(bundle: Bundle) -> tuple[LockedFile, ...]:
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


def matches_entry(entry: LockEntry, bundle: Bundle) -> bool:
    """Whether the bundle is what was locked, modes too."""
    plain = (replace(file, unknown_fields={}) for file in sorted(entry.files, key=lambda f: f.path))
    return to_locked_files(bundle) == tuple(plain)


def parse_target_path(text: str) -> str:
    """The text as a place that may hold a skill: plain, relative, and not of version control.

    Raises: UnsafePath.
    """
    path = RelativePath.parse(text)
    if is_in_version_control_folder(path.text):
        raise UnsafePath(text, "it belongs to version control")
    return path.text


def compute_files_digest(files: Iterable[LockedFile]) -> str:
    """The digest of all files together, equal to `adding.digest_of` of their bundle."""
    ordered = sorted(files, key=lambda file: file.path)
    lines = (f"{file.path}\0{file.size}\0sha256:{file.sha256}\n" for file in ordered)
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def to_portable_source(reference: SourceRef, root: str, base: str) -> str:
    """The text of the reference for a lock at `root`, good in a checkout elsewhere if it can be.

    A folder below `root`, and one that was given relative to `base`, is written relative to `root`.
    """
    if not isinstance(reference, LocalRef | ArchiveRef) or reference.path.startswith("~"):
        return reference.text
    path = Root.resolve(reference.path, base).path
    if os.path.isabs(reference.path) and not is_inside(path, os.path.abspath(root)):
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
        data = read_below(root, RelativePath.parse(name), MAX_LOCK_SIZE)
    except SkillFileNotFound:
        return Lock()
    except TooLarge:
        raise LockInvalid(name, f"it is larger than {MAX_LOCK_SIZE} bytes") from None
    except (NotAFile, UnsafePath):
        raise LockInvalid(name, "it is not a regular file that can be read") from None
    finally:
        root.close()
    return parse_lock(data, name)


@contextmanager
def edit_lock(folder: str, name: str = PROJECT_LOCK) -> Iterator[LockEdit]:
    """The lock in `folder`, kept from other processes and written when the block ends well.

    Nothing is written if nothing changed. Raises: LockInvalid, NotAFile, OSError.
    """
    os.makedirs(folder, exist_ok=True)
    with WritableFolder(folder) as base, base.lock():
        base.recover()
        saved = read_lock(folder, name)
        edit = LockEdit(dict(saved.entries))

        def save() -> None:
            nonlocal saved
            after = replace(saved, entries=dict(edit.entries))
            if after != saved:
                data = render_lock(after)
                parse_lock(data, name)  # what we could not read again is not written
                base.write_file(name, data, base.mode(name) if base.entry_kind(name) else 0o644)
                saved = after

        edit.save = save
        yield edit
        save()


def render_lock(lock: Lock) -> bytes:
    """The lock as JSON: the same bytes for the same entries, in whatever order they came."""
    skills = {key: _serialize_entry(entry) for key, entry in lock.entries.items()}
    return (
        render_json({**lock.unknown_fields, "version": VERSION, "skills": skills}, sort_keys=True)
        + b"\n"
    )


def _serialize_entry(entry: LockEntry) -> dict[str, object]:
    return {
        **entry.unknown_fields,
        "name": entry.name,
        "source": entry.source,
        "path": entry.path,
        "commit": entry.commit,
        "digest": entry.digest,
        "files": [_serialize_file(file) for file in sorted(entry.files, key=lambda f: f.path)],
        "targets": [
            {**one.unknown_fields, "path": one.path, "kind": one.kind}
            for one in sorted(entry.targets, key=lambda t: t.path)
        ],
        "pinned": entry.pinned,
    }


def _serialize_file(file: LockedFile) -> dict[str, object]:
    known = {"path": file.path, "sha256": file.sha256, "size": file.size, "mode": file.mode}
    return {**file.unknown_fields, **known}


# Reading


def parse_lock(data: bytes, name: str = PROJECT_LOCK) -> Lock:
    """The lock that the bytes hold; `name` is the file that messages speak of.

    Raises: LockInvalid.
    """
    if len(data) > MAX_LOCK_SIZE:
        raise LockInvalid(name, f"it is larger than {MAX_LOCK_SIZE} bytes")
    try:
        value = parse_json(data, unique_keys=True)
    except InvalidJson as error:
        raise LockInvalid(name, str(error)) from None
    lock = _LockObject.from_value(value, name, "")
    version = lock.require_integer("version")
    if version != VERSION:
        hint = _UPGRADE_HINT if version > VERSION else ""
        raise LockInvalid(name, f"its version is {version}, not {VERSION}", hint)
    skills = _LockObject.from_value(lock.require("skills"), name, "skills")
    entries = {key: _parse_entry(key, skills) for key in skills.fields}
    return Lock(entries, lock.collect_unknown_fields("version", "skills"))


class _LockObject(NamedTuple):
    """One JSON object of a lock, and where it stands."""

    file: str
    location: str
    fields: dict[str, object]

    @classmethod
    def from_value(cls, value: object, file: str, location: str) -> _LockObject:
        if not isinstance(value, dict):
            raise LockInvalid(file, f"{location or 'it'} is not an object")
        return cls(file, location, value)

    def build_error(self, name: str, problem: str) -> LockInvalid:
        place = f"{self.location}.{name}" if self.location else name
        return LockInvalid(self.file, f"{place} {problem}")

    def require(self, name: str) -> object:
        if name not in self.fields:
            raise self.build_error(name, "is missing")
        return self.fields[name]

    def require_text(self, name: str) -> str:
        value = self.require(name)
        if not isinstance(value, str):
            raise self.build_error(name, "is not text")
        return value

    def require_match(self, name: str, pattern: re.Pattern[str]) -> str:
        value = self.require_text(name)
        if not pattern.fullmatch(value):
            raise self.build_error(name, f"is not of its form: {value[:_MAX_QUOTED]!r}")
        return value

    def require_one_of(self, name: str, *known: str) -> str:
        value = self.require_text(name)
        if value not in known:
            raise self.build_error(name, f"is none of {', '.join(known)}: {value[:_MAX_QUOTED]!r}")
        return value

    def require_integer(self, name: str) -> int:
        value = self.require(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.build_error(name, "is not a whole number")
        return value

    def read_flag(self, name: str) -> bool:
        value = self.fields.get(name, False)
        if not isinstance(value, bool):
            raise self.build_error(name, "is neither true nor false")
        return value

    def require_path(self, name: str) -> str:
        return self.check_plain_path(self.require_text(name), name)

    def check_target_path(self, text: str, name: str) -> str:
        """The text, if a skill may stand there."""
        try:
            parse_target_path(text)
        except UnsafePath as error:
            raise self.build_error(name, f"is no path to write to: {error.reason}") from None
        return self.check_plain_path(text, name)

    def check_plain_path(self, text: str, name: str) -> str:
        """The text, if it is a plain relative path in its shortest form."""
        try:
            path = RelativePath.parse(text).text
        except UnsafePath as error:
            raise self.build_error(name, f"is no path to write to: {error.reason}") from None
        if path != text:
            raise self.build_error(name, "is not written in its shortest form")
        return path

    def require_objects(self, name: str) -> list[_LockObject]:
        values = self.require(name)
        if not isinstance(values, list):
            raise self.build_error(name, "is not a list")
        where = f"{self.location}.{name}"
        return [
            _LockObject.from_value(one, self.file, f"{where}[{at}]")
            for at, one in enumerate(values)
        ]

    def collect_unknown_fields(self, *known: str) -> UnknownFields:
        return {name: value for name, value in self.fields.items() if name not in known}


def _parse_entry(key: str, skills: _LockObject) -> LockEntry:
    skills.check_target_path(key, f"[{key[:_MAX_QUOTED]!r}]")
    one = _LockObject.from_value(skills.fields[key], skills.file, f"{skills.location}[{key!r}]")
    entry = LockEntry(
        source=_parse_source(one),
        path=one.require_path("path") if one.require_text("path") else "",
        commit=one.require_match("commit", _COMMIT_PATTERN),
        digest=one.require_match("digest", _DIGEST_PATTERN),
        files=tuple(_parse_file(file) for file in one.require_objects("files")),
        targets=tuple(_parse_target(target) for target in one.require_objects("targets")),
        pinned=one.read_flag("pinned"),
        name=one.require_text("name") if "name" in one.fields else "",
        unknown_fields=one.collect_unknown_fields(
            "name", "source", "path", "commit", "digest", "files", "targets", "pinned"
        ),
    )
    _reject_duplicates(one, "files", [file.path for file in entry.files])
    _reject_duplicates(one, "targets", [key, *(target.path for target in entry.targets)])
    if compute_files_digest(entry.files) != entry.digest:
        raise one.build_error("digest", "is not that of its files")
    return entry


def _parse_source(one: _LockObject) -> str:
    text = one.require_text("source")
    try:
        parse_source_ref(text, allow_loopback_http=True)
    except SourceRejected as error:
        raise one.build_error("source", f"names no source: {error.problem}") from None
    return text


def _parse_file(one: _LockObject) -> LockedFile:
    return LockedFile(
        one.require_path("path"),
        one.require_match("sha256", _SHA256_PATTERN),
        one.require_integer("size"),
        cast("FileMode", one.require_one_of("mode", "100644", "100755")),
        one.collect_unknown_fields("path", "sha256", "size", "mode"),
    )


def _parse_target(one: _LockObject) -> LockTarget:
    kind = cast("TargetKind", one.require_one_of("kind", "copy", "link"))
    return LockTarget(
        one.check_target_path(one.require_text("path"), "path"),
        kind,
        one.collect_unknown_fields("path", "kind"),
    )


def _reject_duplicates(one: _LockObject, name: str, paths: list[str]) -> None:
    if len(set(paths)) < len(paths):
        raise one.build_error(name, "names one place twice")


def find_entry_keys(entries: Mapping[str, LockEntry], names: Iterable[str]) -> list[str]:
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
