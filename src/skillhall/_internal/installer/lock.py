"""Lock file: the source, commit and files of every installed skill.

Lock order: `edit_lock` locks the folder of the lock file first, then the folders of skills. The
folder of the lock file must not be locked twice, because the locks are not reentrant.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.hints import find_close_names
from skillhall._internal.policy.readable_files import is_publishable, remove_hidden_files
from skillhall._internal.skill.bundle import (
    Bundle,
    RelativePath,
    compute_digest,
    is_in_version_control_folder,
    sha256_hex,
)
from skillhall._internal.sources.opener import parse_source_ref
from skillhall._internal.strict_json import InvalidJson, JsonObject, render_json
from skillhall.errors import (
    LockInvalid,
    NotAFile,
    SkillFileNotFound,
    SkillNotFound,
    SourceRejected,
    TooLarge,
    UnsafePath,
)

VERSION: Final = 1
PROJECT_LOCK: Final = "skillhall-lock.json"  # in the project root
USER_LOCK: Final = ".skillhall-lock.json"  # in `get_user_lock_folder(home)`
LOCK_SCHEMA: Final = Path(__file__).with_name("lock.schema.json")
MAX_LOCK_SIZE: Final = 4 * 1024 * 1024  # bytes; enough for about ten thousand typical skills

FileMode: TypeAlias = Literal["100644", "100755"]  # git's modes of regular files
TargetKind: TypeAlias = Literal["copy", "link"]
# Fields of newer versions are written back unchanged.
UnknownFields: TypeAlias = Mapping[str, object]
JsonFields: TypeAlias = dict[str, object]

# The keys in the file, which are also the names of the attributes.
_ENTRY_FIELDS = ("name", "source", "path", "commit", "digest", "files", "targets", "pinned")
_OPTIONAL_FIELDS = ("signer", "unsigned")  # written only if they say something
_FILE_FIELDS = ("path", "sha256", "size", "mode")
_TARGET_FIELDS = ("path", "kind")

# SHA-1 or SHA-256, as git repositories use either; empty for sources without commits.
_COMMIT_PATTERN = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?")
_DIGEST_PATTERN = re.compile(r"sha256:[0-9a-f]{64}")
_SHA256_PATTERN = re.compile(r"[0-9a-f]{64}")
_GET_PATH = attrgetter("path")
_MAX_QUOTED = 100  # characters of an invalid value in a message
_UPGRADE_HINT = "it was written by a newer version of Skillhall; update Skillhall"


@dataclass(frozen=True, slots=True)
class LockedFile:
    """One file of a skill, as installed."""

    path: str
    sha256: str
    size: int
    mode: FileMode
    unknown_fields: UnknownFields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LockTarget:
    """Additional folder of a skill: a copy of the first one, or a link to it."""

    path: str
    kind: TargetKind
    unknown_fields: UnknownFields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LockEntry:
    """Source, files and additional targets of one installed skill."""

    source: str  # source reference as the user wrote it
    path: str  # folder of the skill in the source; "" is the root
    commit: str  # "" if the source has no commits
    digest: str  # over all files
    files: tuple[LockedFile, ...]
    targets: tuple[LockTarget, ...] = ()  # without the first copy, whose path is the key
    pinned: bool = False  # updates skip pinned skills
    name: str = ""  # from the frontmatter; the folder name may differ
    signer: str = ""  # names of known signers, when it was installed
    unsigned: bool = False  # its signature was broken, and the user accepted it as unsigned
    unknown_fields: UnknownFields = field(default_factory=dict)

    def get_target_paths(self, kind: TargetKind) -> list[str]:
        """Return the paths of additional copies, or of links to the first copy."""
        return [target.path for target in self.targets if target.kind == kind]


@dataclass(frozen=True, slots=True)
class Lock:
    """Content of a lock file; a key is the path of the first copy of a skill."""

    entries: Mapping[str, LockEntry] = field(default_factory=dict)
    unknown_fields: UnknownFields = field(default_factory=dict)


@dataclass(slots=True)
class LockEdit:
    """Open lock file; changes to `entries` are saved at the end of the `with` block.

    `save` saves them immediately. It raises: LockInvalid, NotAFile, OSError.
    """

    entries: dict[str, LockEntry]
    save: Callable[[], None] = lambda: None


def get_user_lock_folder(home: str) -> str:
    """Return the folder of the user's lock file; keys are relative to `home`."""
    return os.path.join(home, ".agents")


def to_locked_files(bundle: Bundle) -> tuple[LockedFile, ...]:
    """Convert the files of a bundle to lock file records, in path order."""
    return tuple(
        LockedFile(
            path,
            sha256_hex(file.read()),
            file.size,
            "100755" if file.executable else "100644",
        )
        for path, file in sorted(bundle.files.items())
    )


def matches_entry(entry: LockEntry, bundle: Bundle) -> bool:
    """Whether the bundle has exactly the locked files, including modes."""
    plain = (replace(file, unknown_fields={}) for file in sorted(entry.files, key=_GET_PATH))
    return to_locked_files(bundle) == tuple(plain)


def drop_new_hidden_files(entry: LockEntry, bundle: Bundle) -> Bundle:
    """Return the bundle without hidden files if they are its only change.

    Earlier versions did not install the hidden files of folders and packages, so the entries
    they wrote do not list any. Such a skill gets its hidden files with its next change.
    """
    if not all(is_publishable(file.path) for file in entry.files):
        return bundle
    visible = remove_hidden_files(bundle)
    return visible if matches_entry(entry, visible) else bundle


def parse_target_path(text: str) -> str:
    """Parse the path of a target: relative, and not in a version control folder.

    Raises: UnsafePath.
    """
    path = RelativePath.parse(text)
    if is_in_version_control_folder(path.text):
        raise UnsafePath(text, "it belongs to version control")
    return path.text


def update_entry(  # noqa: PLR0913 - all that an update changes
    entry: LockEntry,
    bundle: Bundle,
    name: str,
    commit: str,
    *,
    signer: str = "",
    unsigned: bool = False,
) -> LockEntry:
    """Return the entry with the files of the bundle, and this name, commit and signer."""
    files = to_locked_files(bundle)
    digest = compute_files_digest(files)
    return replace(
        entry,
        name=name,
        commit=commit,
        digest=digest,
        files=files,
        signer=signer,
        unsigned=unsigned,
    )


def compute_files_digest(files: Iterable[LockedFile]) -> str:
    """Compute one digest over the paths, sizes and digests of files."""
    return compute_digest((file.path, file.size, file.sha256) for file in files)


def read_lock(folder: str, name: str = PROJECT_LOCK) -> Lock:
    """Read the lock file; empty if it does not exist. Raises: LockInvalid, OSError."""
    try:
        data = read_lock_data(folder, name)
    except TooLarge:
        raise LockInvalid(name, f"larger than {MAX_LOCK_SIZE} bytes") from None
    except (NotAFile, UnsafePath):
        raise LockInvalid(name, "not a regular file") from None
    return Lock() if data is None else parse_lock(data, name)


def read_lock_data(folder: str, name: str) -> bytes | None:
    """Read any lock file; `None` if it does not exist.

    Raises: TooLarge, NotAFile, UnsafePath, OSError.
    """
    if not os.path.lexists(os.path.join(folder, name)):
        return None
    with suppress(FileNotFoundError, SkillFileNotFound), open_root(folder) as root:
        return read_below(root, RelativePath.parse(name), MAX_LOCK_SIZE)
    return None


@contextmanager
def edit_lock(folder: str, name: str = PROJECT_LOCK) -> Iterator[LockEdit]:
    """Lock the folder and read the lock file; save changes at the end of the block.

    Nothing is written after an error, or if nothing changed.
    Raises: LockInvalid, NotAFile, OSError.
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
                parse_lock(data, name)  # never write a lock file that we could not read again
                base.write_file(name, data, base.mode(name) if base.entry_kind(name) else 0o644)
                saved = after

        edit.save = save
        yield edit
        save()


def render_lock(lock: Lock) -> bytes:
    """Render the lock file as JSON; the order of entries does not change the bytes."""

    def to_fields(record: LockedFile | LockTarget | LockEntry, names: Iterable[str]) -> JsonFields:
        return {**record.unknown_fields, **{name: getattr(record, name) for name in names}}

    skills = {
        key: {
            **to_fields(entry, _ENTRY_FIELDS),
            **{name: value for name in _OPTIONAL_FIELDS if (value := getattr(entry, name))},
            "files": [to_fields(file, _FILE_FIELDS) for file in sorted(entry.files, key=_GET_PATH)],
            "targets": [
                to_fields(target, _TARGET_FIELDS) for target in sorted(entry.targets, key=_GET_PATH)
            ],
        }
        for key, entry in lock.entries.items()
    }
    data = {**lock.unknown_fields, "version": VERSION, "skills": skills}
    return render_json(data, sort_keys=True) + b"\n"


def parse_lock(data: bytes, name: str = PROJECT_LOCK) -> Lock:
    """Parse a lock file; `name` is used in messages. Raises: LockInvalid."""
    if len(data) > MAX_LOCK_SIZE:
        raise LockInvalid(name, f"larger than {MAX_LOCK_SIZE} bytes")
    try:
        lock = JsonObject.parse(data)
        version = lock.require("version", int)
        if version != VERSION:
            hint = _UPGRADE_HINT if version > VERSION else ""
            raise LockInvalid(name, f"'version' is {version}, not {VERSION}", hint)
        entries = {key: _parse_entry(key, entry) for key, entry in lock.require_map("skills")}
    except InvalidJson as error:
        raise LockInvalid(name, str(error)) from None
    return Lock(entries, lock.collect_other_fields("version", "skills"))


def _check_path(location: str, text: str, *, is_target: bool) -> str:
    """Return `text` if it is a normalized path; a target has stricter rules.

    Raises: InvalidJson.
    """
    try:
        path = parse_target_path(text) if is_target else RelativePath.parse(text).text
    except UnsafePath as error:
        raise InvalidJson(f"{location} is not a valid path: {error.reason}") from None
    if path != text:
        raise InvalidJson(f"{location} is not a normalized path")
    return path


def _parse_entry(key: str, obj: JsonObject) -> LockEntry:
    _check_path(f"skills[{key[:_MAX_QUOTED]!r}]", key, is_target=True)
    source, path = obj.require("source", str), obj.require("path", str)
    try:
        parse_source_ref(source, allow_loopback_http=True)
    except SourceRejected as error:
        raise obj.build_error("source", f"is not a valid source: {error.problem}") from None
    entry = LockEntry(
        source=source,
        path=_check_path(f"{obj.location}.path", path, is_target=False) if path else "",
        commit=obj.require_match("commit", _COMMIT_PATTERN),
        digest=obj.require_match("digest", _DIGEST_PATTERN),
        files=tuple(
            LockedFile(
                _check_path(f"{file.location}.path", file.require("path", str), is_target=False),
                file.require_match("sha256", _SHA256_PATTERN),
                file.require("size", int),
                cast("FileMode", file.require_choice("mode", "100644", "100755")),
                file.collect_other_fields(*_FILE_FIELDS),
            )
            for file in obj.require_objects("files")
        ),
        targets=tuple(
            LockTarget(
                _check_path(f"{target.location}.path", target.require("path", str), is_target=True),
                cast("TargetKind", target.require_choice("kind", "copy", "link")),
                target.collect_other_fields(*_TARGET_FIELDS),
            )
            for target in obj.require_objects("targets")
        ),
        pinned=obj.require("pinned", bool) if "pinned" in obj.fields else False,
        name=obj.require("name", str) if "name" in obj.fields else "",
        signer=obj.require("signer", str) if "signer" in obj.fields else "",
        unsigned=obj.require("unsigned", bool) if "unsigned" in obj.fields else False,
        unknown_fields=obj.collect_other_fields(*_ENTRY_FIELDS, *_OPTIONAL_FIELDS),
    )
    for name, paths in (
        ("files", [file.path for file in entry.files]),
        ("targets", [key, *(target.path for target in entry.targets)]),
    ):
        if len(set(paths)) < len(paths):
            raise obj.build_error(name, "contains a duplicate path")
    if compute_files_digest(entry.files) != entry.digest:
        raise obj.build_error("digest", "does not match the files")
    return entry


def find_entry_keys(entries: Mapping[str, LockEntry], names: Iterable[str]) -> list[str]:
    """Return the sorted keys of the skills with these folder names or keys.

    If there are no names, returns all keys. Raises: SkillNotFound.
    """
    names = list(names)
    matches: set[str] = set()
    for name in names:
        keys = [key for key in entries if name in (key, key.rpartition("/")[2])]
        if not keys:
            known = sorted(key.rpartition("/")[2] for key in entries)
            raise SkillNotFound(name, find_close_names(name, known))
        matches.update(keys)
    return sorted(matches if names else entries)
