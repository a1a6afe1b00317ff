"""The two locks of `npx skills`: understood as far as possible, kept up, and never spoiled.

A file that is not understood stays as it is, with a note of why. Fields that are not ours to know
stay too, and the version is never changed: the other tool empties a lock of a version it has left
behind. Each call locks the folder of the file, unless the caller holds it already.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.npx_hashes import (
    HashedFile,
    compute_git_tree_id,
    compute_npx_hash,
)
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall._internal.sources.ref import GitHubRef, GitRef, LocalRef, SourceRef, parse_source_ref
from skillhall._internal.strict_json import InvalidJson, parse_json, render_json
from skillhall.errors import NotAFile, SkillFileNotFound, SourceRejected, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MAX_NPX_LOCK_SIZE: Final = 4 * 1024 * 1024  # bytes, as our own lock


class NpxLockFormat(NamedTuple):
    """How one of the two locks is written."""

    version: int
    hash_field: str
    has_timestamps: (
        bool  # entries say when; their order is that of adding, and no newline ends the file
    )
    has_every_url: bool


PROJECT_FORMAT: Final = NpxLockFormat(1, "computedHash", has_timestamps=False, has_every_url=False)
USER_FORMAT: Final = NpxLockFormat(3, "skillFolderHash", has_timestamps=True, has_every_url=True)


class NpxLockPath(NamedTuple):
    """Where a lock lies, and how it is written."""

    folder: str
    name: str
    lock_format: NpxLockFormat


def get_project_lock_path(root: str) -> NpxLockPath:
    """The lock of the project at `root`."""
    return NpxLockPath(root, "skills-lock.json", PROJECT_FORMAT)


def get_user_lock_path(home: str, variables: Mapping[str, str]) -> NpxLockPath:
    """The lock of the person whose home it is."""
    state = variables.get("XDG_STATE_HOME", "")
    parts = (state, "skills") if os.path.isabs(state) else (home, ".agents")
    return NpxLockPath(os.path.join(*parts), ".skill-lock.json", USER_FORMAT)


@dataclass(frozen=True, slots=True)
class NpxEntry:
    """What a lock of `npx skills` says about one skill; "" where it says nothing."""

    name: str
    source: str
    source_type: str  # github, gitlab, git, local, well-known, node_modules…
    source_url: str = ""
    ref: str = ""
    skill_path: str = ""  # of the SKILL.md in the source
    hash: str = ""

    def to_reference(self) -> str | None:
        """The text that names the skill's folder for us; `None` if we cannot reach it.

        Without a `skill_path` it is a folder of skills, and `name` says which.
        """
        try:
            return _REFERENCE_BUILDERS.get(self.source_type, _to_no_reference)(self)
        except (SourceRejected, UnsafePath):
            return None


@dataclass(frozen=True, slots=True)
class NpxLock:
    """The entries that were understood, by name, and what was not."""

    entries: Mapping[str, NpxEntry] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    exists: bool = False


# References


def _parse_folder(entry: NpxEntry) -> str:
    """The folder of the SKILL.md that the entry names. Raises: UnsafePath."""
    folder, _, name = entry.skill_path.rpartition("/")
    if name and not is_skill_md(name):
        raise UnsafePath(entry.skill_path, f"it is no {SKILL_MD}")
    return RelativePath.parse(folder).text if folder else ""


def _to_github_reference(entry: NpxEntry) -> str | None:
    repository = parse_source_ref(entry.source)
    if not isinstance(repository, GitHubRef) or repository.path or repository.ref:
        return None
    return _check_round_trip(
        GitHubRef(repository.owner, repository.repository, _parse_folder(entry), entry.ref)
    )


def _to_git_reference(entry: NpxEntry) -> str | None:
    url = entry.source_url or entry.source
    if ":" not in url:  # owner/repo of a host that nobody noted
        return None
    repository = parse_source_ref(url)
    if not isinstance(repository, GitRef | GitHubRef) or repository.path or repository.ref:
        return None
    if isinstance(repository, GitHubRef):
        found = GitHubRef(repository.owner, repository.repository, _parse_folder(entry), entry.ref)
        return _check_round_trip(found)
    folder = _parse_folder(entry)
    # Only behind .git is a path told from the repository's own.
    end = ".git" if folder and not repository.url.endswith(".git") else ""
    return _check_round_trip(GitRef(repository.url + end, folder, entry.ref))


def _to_local_reference(entry: NpxEntry) -> str | None:
    found = parse_source_ref(entry.source)
    return found.text if isinstance(found, LocalRef) else None


def _to_no_reference(_entry: NpxEntry) -> None:
    return None


def _check_round_trip(reference: SourceRef) -> str | None:
    """The reference's text, if it is read as the same reference: a lock can hold any ref."""
    text = reference.text
    return text if parse_source_ref(text) == reference else None


_REFERENCE_BUILDERS: Final[Mapping[str, Callable[[NpxEntry], str | None]]] = {
    "github": _to_github_reference,
    "gitlab": _to_git_reference,
    "git": _to_git_reference,
    "local": _to_local_reference,
}


def build_npx_entry(
    name: str,
    reference: SourceRef,
    folder: str,
    files: Mapping[str, HashedFile],
    lock_format: NpxLockFormat,
) -> NpxEntry | None:
    """What `npx skills` would note for a skill in `folder` of a source; `None` if it could not.

    It has no words for a Markdown file or an archive by URL, nor for a Python package.
    """
    path = f"{folder}/{SKILL_MD}" if folder else SKILL_MD
    plain = compute_npx_hash({path: content.data for path, content in files.items()})
    if isinstance(reference, GitHubRef):
        source = f"{reference.owner}/{reference.repository}"
        number = compute_git_tree_id(files) if lock_format.has_timestamps else plain
        return NpxEntry(name, source, "github", reference.url, reference.ref, path, number)
    if isinstance(reference, GitRef):
        kind = "gitlab" if urlsplit(reference.url).hostname == "gitlab.com" else "git"
        url = reference.url
        return NpxEntry(name, url, kind, url, reference.ref, path, plain)
    if (
        isinstance(reference, LocalRef) and not lock_format.has_timestamps
    ):  # it keeps none of them for a person
        return NpxEntry(name, reference.text, "local", reference.text, hash=plain)
    return None


# Reading


def read_npx_lock(lock_path: NpxLockPath) -> NpxLock:
    """What the lock says; nothing, with a note, if it cannot be understood. Raises: OSError."""
    try:
        data = _read_json(lock_path)
    except _UnsupportedNpxLock as error:
        return NpxLock(notes=(f"{lock_path.name} is left as it is: {error}",), exists=True)
    if data is None:
        return NpxLock()
    found = {
        name: _parse_entry(name, value, lock_path) for name, value in _get_skills(data).items()
    }
    entries = {name: entry for name, entry in found.items() if entry is not None}
    problem = _check_version(data, lock_path)
    notes = [f"{lock_path.name} is left as it is: {problem}"] if problem else []
    notes += [
        f"{lock_path.name}: the entry {name[:100]!r} cannot be understood"
        for name in found
        if name not in entries
    ]
    return NpxLock(entries, tuple(notes), exists=True)


class _UnsupportedNpxLock(Exception):
    """A lock that nobody may write to; the message says why."""


def _read_json(lock_path: NpxLockPath) -> dict[str, object] | None:
    """The lock's JSON; `None` if there is no lock. Raises: _NotUnderstood, OSError."""
    try:
        root = open_root(lock_path.folder)
    except FileNotFoundError:
        return None
    try:
        value = parse_json(
            read_below(root, RelativePath.parse(lock_path.name), MAX_NPX_LOCK_SIZE),
            unique_keys=True,
        )
    except SkillFileNotFound:
        return None
    except (NotAFile, UnsafePath):
        raise _UnsupportedNpxLock("it is not a regular file that can be read") from None
    except (InvalidJson, TooLarge) as error:
        problem = str(error) if isinstance(error, InvalidJson) else "it is too large"
        raise _UnsupportedNpxLock(problem) from None
    finally:
        root.close()
    if not isinstance(value, dict) or not isinstance(value.get("skills"), dict):
        raise _UnsupportedNpxLock("it holds no skills by name")
    return value


def _get_skills(data: dict[str, object]) -> dict[str, object]:
    skills = data["skills"]
    assert isinstance(skills, dict)  # noqa: S101 - `_read` lets nothing else through
    return skills


def _check_version(data: Mapping[str, object], lock_path: NpxLockPath) -> str:
    version = data.get("version")
    if isinstance(version, bool) or version != lock_path.lock_format.version:
        return f"its version is not {lock_path.lock_format.version}, the one that we can write"
    return ""


def _parse_entry(name: str, value: object, lock_path: NpxLockPath) -> NpxEntry | None:
    if not isinstance(value, dict):
        return None
    known = (
        "source",
        "sourceType",
        "sourceUrl",
        "ref",
        "skillPath",
        lock_path.lock_format.hash_field,
    )
    found = [value.get(key, "") for key in known]
    texts = [text for text in found if isinstance(text, str)]
    if len(texts) < len(found) or not texts[0]:
        return None
    return NpxEntry(name, *texts)


# Writing


class NpxLockResult(NamedTuple):
    """Whether a lock was written, and why not if it should have been."""

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
    """Note the entries in the lock, new or anew; a missing lock is made only if asked.

    Raises: OSError, NotAFile.
    """

    def change(skills: dict[str, object]) -> None:
        for entry in entries:
            before = skills.get(entry.name)
            skills[entry.name] = _merged(before if isinstance(before, dict) else {}, entry)

    def _merged(before: dict[str, object], entry: NpxEntry) -> dict[str, object]:
        known = _serialize_entry(entry, lock_path.lock_format)
        if lock_path.lock_format.has_timestamps:
            moment = _format_timestamp(now)
            known |= {"installedAt": before.get("installedAt", moment), "updatedAt": moment}
        absent = {key for key, value in known.items() if value is None}
        return {k: value for k, value in {**before, **known}.items() if k not in absent}

    return _edit_lock(lock_path, change, create=create, is_locked=is_locked)


def remove_entries(
    lock_path: NpxLockPath, names: Iterable[str], *, is_locked: bool = False
) -> NpxLockResult:
    """Forget the entries of these names, if the lock has them. Raises: OSError, NotAFile."""

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
                is_written=False, note=f"{lock_path.name} is left as it is: {error}"
            )
        if before is None and not create:
            return NpxLockResult(is_written=False)
        data = before or _build_empty_lock(lock_path.lock_format)
        if problem := _check_version(data, lock_path):
            return NpxLockResult(
                is_written=False, note=f"{lock_path.name} is left as it is: {problem}"
            )
        skills = dict(_get_skills(data))
        edit(skills)
        if before is not None and skills == _get_skills(before):
            return NpxLockResult(is_written=False)
        mode = 0o644 if before is None else base.mode(lock_path.name)
        base.write_file(
            lock_path.name, _render_lock({**data, "skills": skills}, lock_path.lock_format), mode
        )
    return NpxLockResult(is_written=True)


def _build_empty_lock(lock_format: NpxLockFormat) -> dict[str, object]:
    empty: dict[str, object] = {"version": lock_format.version, "skills": {}}
    return {**empty, "dismissed": {}} if lock_format.has_timestamps else empty


def _serialize_entry(entry: NpxEntry, lock_format: NpxLockFormat) -> dict[str, object]:
    """The entry's fields in the order of the other tool; `None` for one that must not be there."""
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
    # JavaScript compares the sixteen-bit units of names.
    names = sorted(_get_skills(data), key=lambda name: name.encode("utf-16-be"))
    return (
        render_json({**data, "skills": {name: _get_skills(data)[name] for name in names}}) + b"\n"
    )


def _format_timestamp(now: datetime) -> str:
    """The moment as JavaScript writes it."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
