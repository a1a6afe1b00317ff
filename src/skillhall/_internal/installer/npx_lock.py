"""The two lock files of `npx skills`, and their hashes. `gh skill` writes that of the user, too.

We read both and keep them up to date. A file that cannot be parsed is left unchanged, with a note.
Unknown fields are preserved, and the version is never changed, because `npx skills` discards lock
files of older versions. Each change locks the folder of the file unless the caller has locked it
already.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import methodcaller
from typing import Final, NamedTuple
from urllib.parse import quote

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.lock import read_lock_data
from skillhall._internal.settings import GITHUB_URL
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter_locator import SKILL_MD, is_skill_md
from skillhall._internal.skill.merge import FileState
from skillhall._internal.sources.base import Ref, RepositoryRef
from skillhall._internal.sources.opener import parse_source_ref
from skillhall._internal.sources.site.site_ref import WELL_KNOWN
from skillhall._internal.strict_json import InvalidJson, parse_json, render_json
from skillhall.errors import NotAFile, SourceRejected, TooLarge, UnsafePath

_GH_REF: Final = "pinnedRef"  # the ref of an entry of `gh skill`, which writes the same file
_IGNORED_FOLDERS: Final = frozenset({".git", "node_modules"})
# ASCII in the order of JavaScript's `localeCompare`, which is the same in most locales: spaces and
# punctuation, digits, letters. Case only breaks ties.
_COLLATION_ORDER: Final = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_COLLATION_RANK: Final[Mapping[str, int]] = {
    character: rank for rank, character in enumerate(_COLLATION_ORDER)
}


class NpxLockFormat(NamedTuple):
    """Differences between the two lock files."""

    version: int
    hash_field: str
    # Files with timestamps also have all source URLs, insertion order, and no final newline.
    has_timestamps: bool


PROJECT_FORMAT: Final = NpxLockFormat(1, "computedHash", has_timestamps=False)
USER_FORMAT: Final = NpxLockFormat(3, "skillFolderHash", has_timestamps=True)


class NpxLockPath(NamedTuple):
    """Path and format of an npx lock."""

    folder: str
    name: str
    lock_format: NpxLockFormat


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

        Without a `skill_path`, it refers to a folder of skills, in which `name` selects one.
        """
        has_url = self.source_type in {"git", "gitlab"}
        text = (self.source_url or self.source) if has_url else self.source
        kinds = _VALID_KINDS.get(self.source_type, frozenset())
        if self.source_type == "github" and _is_enterprise_url(self.source_url, self.source):
            text, kinds = self.source_url, _VALID_KINDS["git"]
        if self.source_type == "well-known":
            # The URL is that of the skill's file. A project's lock file has only the host.
            site, is_found, _ = (self.source_url or f"https://{self.source}{WELL_KNOWN}").partition(
                WELL_KNOWN
            )
            text = f"{site}{WELL_KNOWN}#{quote(self.name, safe='')}" if is_found else ""
        if has_url and ":" not in text:  # owner/repository, but the host was not recorded
            return None
        try:
            reference = parse_source_ref(text)
            npx_source = reference.npx_source
            if npx_source is None or npx_source.source_type not in kinds:
                return None
            repository = reference.repository
            return _locate_skill(repository, self) if repository else reference.text
        except (SourceRejected, UnsafePath):
            return None


def _is_enterprise_url(url: str, repository: str) -> bool:
    """Whether `owner/name` is on a GitHub Enterprise Server, as `gh skill` records it."""
    is_elsewhere = url.startswith("https://") and not url.startswith(f"{GITHUB_URL}/")
    return is_elsewhere and url.endswith((f"/{repository}", f"/{repository}.git"))


# Kinds of sources, as `NpxSource` names them, that are valid for the type of an entry.
_VALID_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "github": frozenset({"github"}),
    "gitlab": frozenset({"github", "gitlab", "git"}),
    "git": frozenset({"github", "gitlab", "git"}),
    "local": frozenset({"local"}),
    "well-known": frozenset({"well-known"}),
}


def _locate_skill(repository: RepositoryRef, entry: NpxEntry) -> str | None:
    """Return the source reference of the skill's folder; `None` if unsupported."""
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
    files: Mapping[str, FileState],
    lock_format: NpxLockFormat,
) -> NpxEntry | None:
    """Build the entry that `npx skills` would write; `None` for unsupported sources.

    `npx skills` supports neither URLs of Markdown files and archives nor Python packages. It
    supports local folders only in the lock file of a project.
    """
    path = f"{folder}/{SKILL_MD}" if folder else SKILL_MD
    npx_hash = compute_npx_hash({path: file.data for path, file in files.items()})
    source = reference.npx_source
    if source is None:
        return None
    if source.source_type == "local":
        # `npx skills` does not record local folders in the user's lock file.
        return None if lock_format.has_timestamps else NpxEntry(name, *source, hash=npx_hash)
    if source.source_type == "well-known":
        return NpxEntry(name, *source, hash="" if lock_format.has_timestamps else npx_hash)
    is_tree_id = source.source_type == "github" and lock_format.has_timestamps
    digest = compute_git_tree_id(files) if is_tree_id else npx_hash
    return NpxEntry(name, *source, path, digest)


def read_npx_lock(lock_path: NpxLockPath) -> dict[str, NpxEntry]:
    """Read the valid entries of the npx lock, by name. Raises: OSError."""
    try:
        document = _read_document(lock_path, any_version=True)
    except _UnsupportedNpxLock:
        return {}
    entries = {}
    keys = ["source", "sourceType", "sourceUrl", "ref", "skillPath"]
    for name, value in document.skills.items() if document else ():
        fields = value if isinstance(value, dict) else {}
        if _GH_REF in fields and "ref" not in fields:
            fields = {**fields, "ref": fields[_GH_REF]}
        values = [fields.get(key, "") for key in [*keys, lock_path.lock_format.hash_field]]
        texts = [text for text in values if isinstance(text, str)]
        if len(texts) == len(values) and texts[0]:
            entries[name] = NpxEntry(name, *texts)
    return entries


class _UnsupportedNpxLock(Exception):
    """An npx lock must not be overwritten; the message is the reason."""


class _Document(NamedTuple):
    """The JSON of an npx lock, and its entries."""

    data: dict[str, object]
    skills: dict[str, object]


def _read_document(lock_path: NpxLockPath, *, any_version: bool = False) -> _Document | None:
    """Read the file; `None` if it is missing. Raises: _UnsupportedNpxLock, OSError."""
    try:
        data = read_lock_data(lock_path.folder, lock_path.name)
        if data is None:
            return None
        value = parse_json(data, unique_keys=True)
    except (NotAFile, UnsafePath):
        raise _UnsupportedNpxLock("not a regular file") from None
    except TooLarge:
        raise _UnsupportedNpxLock("too large") from None
    except InvalidJson as error:
        raise _UnsupportedNpxLock(str(error)) from None
    skills = value.get("skills") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(skills, dict):
        raise _UnsupportedNpxLock("'skills' is not an object")
    version, expected = value.get("version"), lock_path.lock_format.version
    if not any_version and (isinstance(version, bool) or version != expected):
        raise _UnsupportedNpxLock(f"'version' is not {expected}")
    return _Document(value, skills)


class NpxLockResult(NamedTuple):
    """Whether an npx lock was written; `note` gives the reason if it could not be."""

    is_written: bool
    note: str = ""


def edit_npx_lock(
    lock_path: NpxLockPath,
    changes: Mapping[str, NpxEntry | None],
    now: datetime,
    *,
    is_locked: bool = False,
) -> NpxLockResult:
    """Set the entries with these names; `None` removes the entry.

    A missing file is created only if there is a new entry. Raises: OSError, NotAFile.
    """
    lock_format, can_create = lock_path.lock_format, any(changes.values())
    if can_create:
        os.makedirs(lock_path.folder, exist_ok=True)
    elif not os.path.isdir(lock_path.folder):
        return NpxLockResult(is_written=False)
    with WritableFolder(lock_path.folder) as base, nullcontext() if is_locked else base.lock():
        try:
            before = _read_document(lock_path)
        except _UnsupportedNpxLock as error:
            note = f"{lock_path.name} is left unchanged: {error}"
            return NpxLockResult(is_written=False, note=note)
        if before is None and not can_create:
            return NpxLockResult(is_written=False)
        skills = dict(before.skills) if before else {}
        for name, entry in changes.items():
            if entry is None:
                skills.pop(name, None)
            else:
                skills[name] = _merge_entry(skills.get(name), entry, lock_format, now)
        if before is not None and skills == before.skills:
            return NpxLockResult(is_written=False)
        mode = 0o644 if before is None else base.mode(lock_path.name)
        data: dict[str, object] = before.data if before else {"version": lock_format.version}
        if lock_format.has_timestamps:
            empty = {"version": lock_format.version, "skills": {}, "dismissed": {}}
            content = render_json({**(data if before else empty), "skills": skills})
        else:
            # JavaScript sorts strings by UTF-16 code units.
            names = sorted(skills, key=methodcaller("encode", "utf-16-be"))
            skills = {name: skills[name] for name in names}
            content = render_json({**data, "skills": skills}) + b"\n"
        base.write_file(lock_path.name, content, mode)
    return NpxLockResult(is_written=True)


def _merge_entry(
    before: object, entry: NpxEntry, lock_format: NpxLockFormat, now: datetime
) -> dict[str, object]:
    """Return the entry in the field order of `npx skills`; keep unknown fields."""
    old = before if isinstance(before, dict) else {}
    has_url = lock_format.has_timestamps or entry.source_type in {"git", "gitlab"}
    kind = {"sourceType": entry.source_type}
    origin = {"sourceUrl": entry.source_url if has_url else None, "ref": entry.ref or None}
    if _GH_REF in old:
        origin[_GH_REF] = entry.ref or None
    new: dict[str, object] = {
        "source": entry.source,
        **({**kind, **origin} if lock_format.has_timestamps else {**origin, **kind}),
        "skillPath": entry.skill_path or None,
        lock_format.hash_field: entry.hash,
    }
    if lock_format.has_timestamps:
        # The format of JavaScript's `Date.toISOString`.
        timestamp = now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        new |= {"installedAt": old.get("installedAt", timestamp), "updatedAt": timestamp}
    absent = {key for key, value in new.items() if value is None}
    return {key: value for key, value in {**old, **new}.items() if key not in absent}


def compute_npx_hash(files: Mapping[str, bytes]) -> str:
    """Compute the SHA-256 over all paths and contents, sorted as in JavaScript.

    The order depends on the locale unless `has_portable_order`.
    """
    digest = hashlib.sha256()
    paths = [path for path in files if _IGNORED_FOLDERS.isdisjoint(path.split("/")[:-1])]
    for path in sorted(paths, key=_collation_key):
        digest.update(path.encode())
        digest.update(files[path])
    return digest.hexdigest()


def has_portable_order(files: Mapping[str, bytes]) -> bool:
    """Whether `compute_npx_hash` is the same in all locales."""
    return all(path.isascii() for path in files)


def _collation_key(path: str) -> tuple[list[int], list[bool]]:
    # Non-ASCII characters sort after ASCII, by code point.
    ranks = [_COLLATION_RANK.get(c, len(_COLLATION_ORDER) + ord(c)) for c in path.lower()]
    return ranks, [character.isupper() for character in path]


def compute_git_tree_id(files: Mapping[str, FileState]) -> str:
    """Compute git's tree id of a folder with these files, in a SHA-1 repository."""
    folders: dict[str, dict[str, FileState]] = {}
    entries: list[tuple[bytes, bytes]] = []
    for path, file in files.items():
        first, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(first, {})[rest] = file
        else:
            mode = b"100755" if file.executable else b"100644"
            blob_id = _compute_object_id(b"blob", file.data)
            entries.append(_encode_tree_entry(mode, first, blob_id))
    for name, below in folders.items():
        entries.append(_encode_tree_entry(b"40000", name, compute_git_tree_id(below)))
    return _compute_object_id(b"tree", b"".join(entry for _, entry in sorted(entries)))


def _encode_tree_entry(mode: bytes, name: str, object_id: str) -> tuple[bytes, bytes]:
    """Return the sort key and the encoded entry."""
    encoded = name.encode()
    slash = b"/" if mode == b"40000" else b""  # git sorts a folder as if its name ended in "/"
    return encoded + slash, mode + b" " + encoded + b"\0" + bytes.fromhex(object_id)


def _compute_object_id(kind: bytes, data: bytes) -> str:
    header = kind + b" " + str(len(data)).encode() + b"\0"
    return hashlib.sha1(header + data, usedforsecurity=False).hexdigest()
