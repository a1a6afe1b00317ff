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

from skillhall._internal.fs.handles import open_root, read_beneath
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.npx_hashes import Content, computed_hash, git_tree_id
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall._internal.sources.ref import GitHubRef, GitRef, LocalRef, SourceRef, parse_reference
from skillhall._internal.strict_json import NotJson, parse_json, render_json
from skillhall.errors import NotAFile, SkillFileNotFound, SourceRejected, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MAX_FOREIGN: Final = 4 * 1024 * 1024  # bytes, as our own lock


class Layout(NamedTuple):
    """How one of the two locks is written."""

    version: int
    hash_field: str
    is_timed: bool  # entries say when; their order is that of adding, and no newline ends the file
    names_every_url: bool


PROJECT: Final = Layout(1, "computedHash", is_timed=False, names_every_url=False)
USER: Final = Layout(3, "skillFolderHash", is_timed=True, names_every_url=True)


class ForeignPlace(NamedTuple):
    """Where a lock lies, and how it is written."""

    folder: str
    name: str
    layout: Layout


def project_place(root: str) -> ForeignPlace:
    """The lock of the project at `root`."""
    return ForeignPlace(root, "skills-lock.json", PROJECT)


def user_place(home: str, variables: Mapping[str, str]) -> ForeignPlace:
    """The lock of the person whose home it is."""
    state = variables.get("XDG_STATE_HOME", "")
    parts = (state, "skills") if os.path.isabs(state) else (home, ".agents")
    return ForeignPlace(os.path.join(*parts), ".skill-lock.json", USER)


@dataclass(frozen=True, slots=True)
class ForeignEntry:
    """What a lock of `npx skills` says about one skill; "" where it says nothing."""

    name: str
    source: str
    source_type: str  # github, gitlab, git, local, well-known, node_modules…
    source_url: str = ""
    ref: str = ""
    skill_path: str = ""  # of the SKILL.md in the source
    hash: str = ""

    def as_reference(self) -> str | None:
        """The text that names the skill's folder for us; `None` if we cannot reach it.

        Without a `skill_path` it is a folder of skills, and `name` says which.
        """
        try:
            return _REFERENCES.get(self.source_type, _no_reference)(self)
        except (SourceRejected, UnsafePath):
            return None


@dataclass(frozen=True, slots=True)
class ForeignLock:
    """The entries that were understood, by name, and what was not."""

    entries: Mapping[str, ForeignEntry] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    exists: bool = False


# References


def _folder(entry: ForeignEntry) -> str:
    """The folder of the SKILL.md that the entry names. Raises: UnsafePath."""
    folder, _, name = entry.skill_path.rpartition("/")
    if name and not is_skill_md(name):
        raise UnsafePath(entry.skill_path, f"it is no {SKILL_MD}")
    return RelativePath.parse(folder).text if folder else ""


def _github(entry: ForeignEntry) -> str | None:
    repository = parse_reference(entry.source)
    if not isinstance(repository, GitHubRef) or repository.path or repository.ref:
        return None
    return _checked(GitHubRef(repository.owner, repository.repository, _folder(entry), entry.ref))


def _git(entry: ForeignEntry) -> str | None:
    url = entry.source_url or entry.source
    if ":" not in url:  # owner/repo of a host that nobody noted
        return None
    repository = parse_reference(url)
    if not isinstance(repository, GitRef | GitHubRef) or repository.path or repository.ref:
        return None
    if isinstance(repository, GitHubRef):
        found = GitHubRef(repository.owner, repository.repository, _folder(entry), entry.ref)
        return _checked(found)
    folder = _folder(entry)
    # Only behind .git is a path told from the repository's own.
    end = ".git" if folder and not repository.url.endswith(".git") else ""
    return _checked(GitRef(repository.url + end, folder, entry.ref))


def _local(entry: ForeignEntry) -> str | None:
    found = parse_reference(entry.source)
    return found.text if isinstance(found, LocalRef) else None


def _no_reference(_entry: ForeignEntry) -> None:
    return None


def _checked(reference: SourceRef) -> str | None:
    """The reference's text, if it is read as the same reference: a lock can hold any ref."""
    text = reference.text
    return text if parse_reference(text) == reference else None


_REFERENCES: Final[Mapping[str, Callable[[ForeignEntry], str | None]]] = {
    "github": _github,
    "gitlab": _git,
    "git": _git,
    "local": _local,
}


def foreign_entry(
    name: str, reference: SourceRef, folder: str, files: Mapping[str, Content], layout: Layout
) -> ForeignEntry | None:
    """What `npx skills` would note for a skill in `folder` of a source; `None` if it could not.

    It has no words for a Markdown file or an archive by URL, nor for a Python package.
    """
    path = f"{folder}/{SKILL_MD}" if folder else SKILL_MD
    plain = computed_hash({path: content.data for path, content in files.items()})
    if isinstance(reference, GitHubRef):
        source = f"{reference.owner}/{reference.repository}"
        number = git_tree_id(files) if layout.is_timed else plain
        return ForeignEntry(name, source, "github", reference.url, reference.ref, path, number)
    if isinstance(reference, GitRef):
        kind = "gitlab" if urlsplit(reference.url).hostname == "gitlab.com" else "git"
        url = reference.url
        return ForeignEntry(name, url, kind, url, reference.ref, path, plain)
    if (
        isinstance(reference, LocalRef) and not layout.is_timed
    ):  # it keeps none of them for a person
        return ForeignEntry(name, reference.text, "local", reference.text, hash=plain)
    return None


# Reading


def read_foreign(place: ForeignPlace) -> ForeignLock:
    """What the lock says; nothing, with a note, if it cannot be understood. Raises: OSError."""
    try:
        data = _read(place)
    except _NotUnderstood as error:
        return ForeignLock(notes=(f"{place.name} is left as it is: {error}",), exists=True)
    if data is None:
        return ForeignLock()
    found = {name: _understood(name, value, place) for name, value in _skills(data).items()}
    entries = {name: entry for name, entry in found.items() if entry is not None}
    problem = _version_problem(data, place)
    notes = [f"{place.name} is left as it is: {problem}"] if problem else []
    notes += [
        f"{place.name}: the entry {name[:100]!r} cannot be understood"
        for name in found
        if name not in entries
    ]
    return ForeignLock(entries, tuple(notes), exists=True)


class _NotUnderstood(Exception):
    """A lock that nobody may write to; the message says why."""


def _read(place: ForeignPlace) -> dict[str, object] | None:
    """The lock's JSON; `None` if there is no lock. Raises: _NotUnderstood, OSError."""
    try:
        root = open_root(place.folder)
    except FileNotFoundError:
        return None
    try:
        value = parse_json(
            read_beneath(root, RelativePath.parse(place.name), MAX_FOREIGN), unique=True
        )
    except SkillFileNotFound:
        return None
    except (NotAFile, UnsafePath):
        raise _NotUnderstood("it is not a regular file that can be read") from None
    except (NotJson, TooLarge) as error:
        problem = str(error) if isinstance(error, NotJson) else "it is too large"
        raise _NotUnderstood(problem) from None
    finally:
        root.close()
    if not isinstance(value, dict) or not isinstance(value.get("skills"), dict):
        raise _NotUnderstood("it holds no skills by name")
    return value


def _skills(data: dict[str, object]) -> dict[str, object]:
    skills = data["skills"]
    assert isinstance(skills, dict)  # noqa: S101 - `_read` lets nothing else through
    return skills


def _version_problem(data: Mapping[str, object], place: ForeignPlace) -> str:
    version = data.get("version")
    if isinstance(version, bool) or version != place.layout.version:
        return f"its version is not {place.layout.version}, the one that we can write"
    return ""


def _understood(name: str, value: object, place: ForeignPlace) -> ForeignEntry | None:
    if not isinstance(value, dict):
        return None
    known = ("source", "sourceType", "sourceUrl", "ref", "skillPath", place.layout.hash_field)
    found = [value.get(key, "") for key in known]
    texts = [text for text in found if isinstance(text, str)]
    if len(texts) < len(found) or not texts[0]:
        return None
    return ForeignEntry(name, *texts)


# Writing


class Outcome(NamedTuple):
    """Whether a lock was written, and why not if it should have been."""

    written: bool
    note: str = ""


def upsert(
    place: ForeignPlace,
    entries: Iterable[ForeignEntry],
    now: datetime,
    *,
    create: bool = False,
    held: bool = False,
) -> Outcome:
    """Note the entries in the lock, new or anew; a missing lock is made only if asked.

    Raises: OSError, NotAFile.
    """

    def change(skills: dict[str, object]) -> None:
        for entry in entries:
            before = skills.get(entry.name)
            skills[entry.name] = _merged(before if isinstance(before, dict) else {}, entry)

    def _merged(before: dict[str, object], entry: ForeignEntry) -> dict[str, object]:
        known = _fields(entry, place.layout)
        if place.layout.is_timed:
            moment = _moment(now)
            known |= {"installedAt": before.get("installedAt", moment), "updatedAt": moment}
        absent = {key for key, value in known.items() if value is None}
        return {k: value for k, value in {**before, **known}.items() if k not in absent}

    return _change(place, change, create=create, held=held)


def remove(place: ForeignPlace, names: Iterable[str], *, held: bool = False) -> Outcome:
    """Forget the entries of these names, if the lock has them. Raises: OSError, NotAFile."""

    def change(skills: dict[str, object]) -> None:
        for name in names:
            skills.pop(name, None)

    return _change(place, change, create=False, held=held)


def _change(
    place: ForeignPlace,
    change: Callable[[dict[str, object]], None],
    *,
    create: bool,
    held: bool,
) -> Outcome:
    if create:
        os.makedirs(place.folder, exist_ok=True)
    elif not os.path.isdir(place.folder):
        return Outcome(written=False)
    with WritableFolder(place.folder) as base, nullcontext() if held else base.locked():
        try:
            before = _read(place)
        except _NotUnderstood as error:
            return Outcome(written=False, note=f"{place.name} is left as it is: {error}")
        if before is None and not create:
            return Outcome(written=False)
        data = before or _empty(place.layout)
        if problem := _version_problem(data, place):
            return Outcome(written=False, note=f"{place.name} is left as it is: {problem}")
        skills = dict(_skills(data))
        change(skills)
        if before is not None and skills == _skills(before):
            return Outcome(written=False)
        mode = 0o644 if before is None else base.mode(place.name)
        base.put(place.name, _rendered({**data, "skills": skills}, place.layout), mode)
    return Outcome(written=True)


def _empty(layout: Layout) -> dict[str, object]:
    empty: dict[str, object] = {"version": layout.version, "skills": {}}
    return {**empty, "dismissed": {}} if layout.is_timed else empty


def _fields(entry: ForeignEntry, layout: Layout) -> dict[str, object]:
    """The entry's fields in the order of the other tool; `None` for one that must not be there."""
    has_url = layout.names_every_url or entry.source_type in {"git", "gitlab"}
    kind = {"sourceType": entry.source_type}
    origin = {"sourceUrl": entry.source_url if has_url else None, "ref": entry.ref or None}
    return {
        "source": entry.source,
        **({**kind, **origin} if layout.is_timed else {**origin, **kind}),
        "skillPath": entry.skill_path or None,
        layout.hash_field: entry.hash,
    }


def _rendered(data: dict[str, object], layout: Layout) -> bytes:
    if layout.is_timed:
        return render_json(data)
    # JavaScript compares the sixteen-bit units of names.
    names = sorted(_skills(data), key=lambda name: name.encode("utf-16-be"))
    return render_json({**data, "skills": {name: _skills(data)[name] for name in names}}) + b"\n"


def _moment(now: datetime) -> str:
    """The moment as JavaScript writes it."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
