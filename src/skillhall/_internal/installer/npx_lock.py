"""The two lock files of `npx skills`, which we read and keep up to date.

A file that cannot be parsed is left unchanged, with a note. Unknown fields are preserved, and the
version is never changed, because `npx skills` discards lock files of older versions. Each change
locks the folder of the file unless the caller has locked it already.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.npx_hashes import (
    HashedFile,
    compute_git_tree_id,
    compute_npx_hash,
)
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall._internal.sources.kinds import parse_source_ref
from skillhall._internal.strict_json import InvalidJson, parse_json, render_json
from skillhall.errors import NotAFile, SkillFileNotFound, SourceRejected, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skillhall._internal.sources.base import Ref, RepositoryRef

MAX_NPX_LOCK_SIZE: Final = 4 * 1024 * 1024  # bytes, as for our own lock file


class NpxLockFormat(NamedTuple):
    """Differences between the two lock files."""

    version: int
    hash_field: str
    has_timestamps: bool  # such files are also in insertion order, without a final newline
    has_every_url: bool


PROJECT_FORMAT: Final = NpxLockFormat(1, "computedHash", has_timestamps=False, has_every_url=False)
USER_FORMAT: Final = NpxLockFormat(3, "skillFolderHash", has_timestamps=True, has_every_url=True)


class NpxLockPath(NamedTuple):
    """Path and format of an npx lock."""

    folder: str
    name: str
    lock_format: NpxLockFormat


def get_project_lock_path(root: str) -> NpxLockPath:
    """Return the npx lock of the project at `root`."""
    return NpxLockPath(root, "skills-lock.json", PROJECT_FORMAT)


def get_user_lock_path(home: str, variables: Mapping[str, str]) -> NpxLockPath:
    """Return the npx lock of the user with this home folder."""
    state = variables.get("XDG_STATE_HOME", "")
    parts = (state, "skills") if os.path.isabs(state) else (home, ".agents")
    return NpxLockPath(os.path.join(*parts), ".skill-lock.json", USER_FORMAT)


@dataclass(frozen=True, slots=True)
class NpxEntry:
    """One skill in an npx lock; missing fields are empty strings."""

    name: str
    source: str
    source_type: str  # github, gitlab, git, local, well-known, node_modules…
    source_url: str = ""
    ref: str = ""
    skill_path: str = ""  # path of the SKILL.md in the source
    hash: str = ""

    def to_reference(self) -> str | None:
        """Return the source reference of the skill's folder; `None` if unsupported.

        Without a `skill_path` it refers to a folder of skills; `name` selects one.
        """
        has_url = self.source_type in {"git", "gitlab"}
        text = (self.source_url or self.source) if has_url else self.source
        if has_url and ":" not in text:  # owner/repository, but the host was not recorded
            return None
        try:
            reference = parse_source_ref(text)
            npx_source = reference.npx_source
            kinds = _VALID_KINDS.get(self.source_type, ())
            if npx_source is None or npx_source.source_type not in kinds:
                return None
            repository = reference.repository
            return _locate_skill(repository, self) if repository else reference.text
        except (SourceRejected, UnsafePath):
            return None


@dataclass(frozen=True, slots=True)
class NpxLock:
    """Valid entries of an npx lock by name, with notes on invalid ones."""

    entries: Mapping[str, NpxEntry] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    exists: bool = False


# Kinds of sources, as `NpxSource` names them, that are valid for the type of an entry.
_VALID_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "github": frozenset({"github"}),
    "gitlab": frozenset({"github", "gitlab", "git"}),
    "git": frozenset({"github", "gitlab", "git"}),
    "local": frozenset({"local"}),
}


def _locate_skill(repository: RepositoryRef, entry: NpxEntry) -> str | None:
    """Return the source reference of the entry's folder in the repository."""
    folder, _, name = entry.skill_path.rpartition("/")
    if repository.path or repository.ref or (name and not is_skill_md(name)):
        return None
    reference: Ref = repository
    if folder and not repository.git_url().endswith(".git"):
        # Without ".git", the folder would be parsed as a part of the repository's URL.
        reference = parse_source_ref(f"{repository.git_url()}.git")
    reference = reference.at(RelativePath.parse(folder).text if folder else "", entry.ref)
    # An npx lock may contain any text as a ref, such as "a@b" or "--option".
    return reference.text if parse_source_ref(reference.text) == reference else None


def build_npx_entry(
    name: str,
    reference: Ref,
    folder: str,
    files: Mapping[str, HashedFile],
    lock_format: NpxLockFormat,
) -> NpxEntry | None:
    """Build the entry that `npx skills` would write; `None` for unsupported sources.

    It supports no Markdown file or archive by URL, and no Python package.
    """
    path = f"{folder}/{SKILL_MD}" if folder else SKILL_MD
    npx_hash = compute_npx_hash({path: content.data for path, content in files.items()})
    source = reference.npx_source
    if source is None:
        return None
    if source.source_type == "local":
        # `npx skills` does not record local folders in the user's lock file.
        return None if lock_format.has_timestamps else NpxEntry(name, *source, hash=npx_hash)
    is_tree_id = source.source_type == "github" and lock_format.has_timestamps
    digest = compute_git_tree_id(files) if is_tree_id else npx_hash
    return NpxEntry(name, *source, path, digest)


def read_npx_lock(lock_path: NpxLockPath) -> NpxLock:
    """Read the npx lock; empty, with a note, if it is invalid. Raises: OSError."""
    try:
        data = _read_json(lock_path)
    except _UnsupportedNpxLock as error:
        return NpxLock(notes=(f"{lock_path.name} is left unchanged: {error}",), exists=True)
    if data is None:
        return NpxLock()
    parsed = {
        name: _parse_entry(name, value, lock_path) for name, value in _get_skills(data).items()
    }
    entries = {name: entry for name, entry in parsed.items() if entry is not None}
    problem = _check_version(data, lock_path)
    notes = [f"{lock_path.name} is left unchanged: {problem}"] if problem else []
    notes += [
        f"{lock_path.name}: invalid entry {name[:100]!r}" for name in parsed if name not in entries
    ]
    return NpxLock(entries, tuple(notes), exists=True)


class _UnsupportedNpxLock(Exception):
    """An npx lock that must not be overwritten; the message is the reason."""


def _read_json(lock_path: NpxLockPath) -> dict[str, object] | None:
    """Read the JSON object; `None` if the file is missing.

    Raises: _UnsupportedNpxLock, OSError.
    """
    try:
        root = open_root(lock_path.folder)
    except FileNotFoundError:
        return None
    try:
        data = read_below(root, RelativePath.parse(lock_path.name), MAX_NPX_LOCK_SIZE)
        value = parse_json(data, unique_keys=True)
    except SkillFileNotFound:
        return None
    except (NotAFile, UnsafePath):
        raise _UnsupportedNpxLock("not a regular file") from None
    except (InvalidJson, TooLarge) as error:
        problem = str(error) if isinstance(error, InvalidJson) else "too large"
        raise _UnsupportedNpxLock(problem) from None
    finally:
        root.close()
    if not isinstance(value, dict) or not isinstance(value.get("skills"), dict):
        raise _UnsupportedNpxLock("skills is not an object")
    return value


def _get_skills(data: dict[str, object]) -> dict[str, object]:
    skills = data["skills"]
    assert isinstance(skills, dict)  # noqa: S101 - checked by `_read_json`
    return skills


def _check_version(data: Mapping[str, object], lock_path: NpxLockPath) -> str:
    version = data.get("version")
    if isinstance(version, bool) or version != lock_path.lock_format.version:
        return f"version is not {lock_path.lock_format.version}"
    return ""


def _parse_entry(name: str, value: object, lock_path: NpxLockPath) -> NpxEntry | None:
    if not isinstance(value, dict):
        return None
    hash_field = lock_path.lock_format.hash_field
    keys = ("source", "sourceType", "sourceUrl", "ref", "skillPath", hash_field)
    values = [value.get(key, "") for key in keys]
    texts = [text for text in values if isinstance(text, str)]
    if len(texts) < len(values) or not texts[0]:
        return None
    return NpxEntry(name, *texts)


class NpxLockResult(NamedTuple):
    """Whether an npx lock was written; `note` gives the reason if it could not be."""

    is_written: bool
    note: str = ""


def upsert_entries(
    lock_path: NpxLockPath,
    entries: Iterable[NpxEntry],
    now: datetime,
    *,
    create: bool = False,
    is_locked: bool = False,
) -> NpxLockResult:
    """Add or replace entries; `create` also creates a missing file.

    Raises: OSError, NotAFile.
    """

    def change(skills: dict[str, object]) -> None:
        for entry in entries:
            before = skills.get(entry.name)
            skills[entry.name] = merge(before if isinstance(before, dict) else {}, entry)

    def merge(before: dict[str, object], entry: NpxEntry) -> dict[str, object]:
        known = _serialize_entry(entry, lock_path.lock_format)
        if lock_path.lock_format.has_timestamps:
            timestamp = _format_timestamp(now)
            known |= {"installedAt": before.get("installedAt", timestamp), "updatedAt": timestamp}
        absent = {key for key, value in known.items() if value is None}
        return {key: value for key, value in {**before, **known}.items() if key not in absent}

    return _edit_lock(lock_path, change, create=create, is_locked=is_locked)


def remove_entries(
    lock_path: NpxLockPath, names: Iterable[str], *, is_locked: bool = False
) -> NpxLockResult:
    """Remove the entries with these names, if present. Raises: OSError, NotAFile."""

    def change(skills: dict[str, object]) -> None:
        for name in names:
            skills.pop(name, None)

    return _edit_lock(lock_path, change, create=False, is_locked=is_locked)


def _edit_lock(
    lock_path: NpxLockPath,
    edit: Callable[[dict[str, object]], None],
    *,
    create: bool,
    is_locked: bool,
) -> NpxLockResult:
    if create:
        os.makedirs(lock_path.folder, exist_ok=True)
    elif not os.path.isdir(lock_path.folder):
        return NpxLockResult(is_written=False)
    with WritableFolder(lock_path.folder) as base, nullcontext() if is_locked else base.lock():
        try:
            before = _read_json(lock_path)
        except _UnsupportedNpxLock as error:
            return NpxLockResult(
                is_written=False, note=f"{lock_path.name} is left unchanged: {error}"
            )
        if before is None and not create:
            return NpxLockResult(is_written=False)
        data = before or _build_empty_lock(lock_path.lock_format)
        if problem := _check_version(data, lock_path):
            note = f"{lock_path.name} is left unchanged: {problem}"
            return NpxLockResult(is_written=False, note=note)
        skills = dict(_get_skills(data))
        edit(skills)
        if before is not None and skills == _get_skills(before):
            return NpxLockResult(is_written=False)
        mode = 0o644 if before is None else base.mode(lock_path.name)
        content = _render_lock({**data, "skills": skills}, lock_path.lock_format)
        base.write_file(lock_path.name, content, mode)
    return NpxLockResult(is_written=True)


def _build_empty_lock(lock_format: NpxLockFormat) -> dict[str, object]:
    empty: dict[str, object] = {"version": lock_format.version, "skills": {}}
    return {**empty, "dismissed": {}} if lock_format.has_timestamps else empty


def _serialize_entry(entry: NpxEntry, lock_format: NpxLockFormat) -> dict[str, object]:
    """Serialize in the field order of `npx skills`; `None` marks fields to omit."""
    has_url = lock_format.has_every_url or entry.source_type in {"git", "gitlab"}
    kind = {"sourceType": entry.source_type}
    origin = {"sourceUrl": entry.source_url if has_url else None, "ref": entry.ref or None}
    return {
        "source": entry.source,
        **({**kind, **origin} if lock_format.has_timestamps else {**origin, **kind}),
        "skillPath": entry.skill_path or None,
        lock_format.hash_field: entry.hash,
    }


def _render_lock(data: dict[str, object], lock_format: NpxLockFormat) -> bytes:
    if lock_format.has_timestamps:
        return render_json(data)
    # JavaScript sorts strings by UTF-16 code units.
    names = sorted(_get_skills(data), key=lambda name: name.encode("utf-16-be"))
    skills = {name: _get_skills(data)[name] for name in names}
    return render_json({**data, "skills": skills}) + b"\n"


def _format_timestamp(now: datetime) -> str:
    # The format of JavaScript's `Date.toISOString`.
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
