"""Versions of published skills: derived from their files, and stored in a JSON file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import digest_files, sha256_hex
from skillhall._internal.strict_json import JsonObject, render_json
from skillhall.errors import VersionNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.publishing.file_tree import FileTree

_FIRST_VERSION = "1.0.0"
_VERSION = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_FORMAT = 1


class Bump(StrEnum):
    """The part of a version that a change increases."""

    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"


_BUMPS = (Bump.PATCH, Bump.MINOR, Bump.MAJOR)  # from the smallest to the largest


class SkillRelease(NamedTuple):
    """One version of a skill."""

    version: str
    date: str  # UTC, such as 2026-01-31T12:00:00Z
    digest: str
    changes: tuple[str, ...]  # such as "changed SKILL.md"
    yanked: str | None = None  # the reason; "" if none was given


@dataclass(frozen=True, slots=True)
class SkillLog:
    """The versions of a skill, the oldest first, and the files of the latest one."""

    releases: tuple[SkillRelease, ...]
    files: Mapping[str, str]  # mode and digest by path

    @property
    def latest(self) -> SkillRelease:
        """The latest version."""
        return self.releases[-1]


class CollectionRelease(NamedTuple):
    """One version of all skills together: of the packages and repositories."""

    version: str
    date: str
    metadata: str  # digest of the manifest's metadata
    skills: Mapping[str, str]  # versions by name


@dataclass(frozen=True, slots=True)
class VersionLog:
    """The versions of all skills, and those of the collection, the oldest first."""

    skills: Mapping[str, SkillLog] = field(default_factory=dict)
    releases: tuple[CollectionRelease, ...] = ()


def bump_version(version: str, bump: Bump) -> str:
    """Return the version that follows."""
    major, minor, patch = map(int, version.split("."))
    if bump is Bump.MAJOR:
        return f"{major + 1}.0.0"
    return f"{major}.{minor + 1}.0" if bump is Bump.MINOR else f"{major}.{minor}.{patch + 1}"


def describe_files(files: FileTree) -> dict[str, str]:
    """Return the mode and the digest of each file, by path."""
    return {
        path: f"{mode:o} sha256:{sha256_hex(data)}" for path, (data, mode) in sorted(files.items())
    }


def list_changes(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, ...]:
    """Return one line per file that differs."""
    return tuple(
        f"{'added' if path not in old else 'removed' if path not in new else 'changed'} {path}"
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
    )


def record_versions(
    log: VersionLog, skills: Mapping[str, FileTree], metadata: str, bump: Bump, now: str
) -> VersionLog:
    """Return the log with a new version for each skill whose files have changed.

    The same files give the same log. A yanked version stays out of the collection.
    """
    logs = dict(log.skills)
    for name, files in skills.items():
        described = describe_files(files)
        old = logs.get(name)
        if old is not None and old.files == described:
            continue
        version = _FIRST_VERSION if old is None else bump_version(old.latest.version, bump)
        changes = ("first version",) if old is None else list_changes(old.files, described)
        release = SkillRelease(version, now, digest_files(files), changes)
        releases = () if old is None else old.releases
        logs[name] = SkillLog((*releases, release), described)
    included = {
        name: logs[name].latest.version
        for name in sorted(skills)
        if logs[name].latest.yanked is None
    }
    return VersionLog(logs, _add_collection_release(log.releases, included, metadata, now))


def _add_collection_release(
    releases: tuple[CollectionRelease, ...], skills: Mapping[str, str], metadata: str, now: str
) -> tuple[CollectionRelease, ...]:
    if not releases:
        return (CollectionRelease(_FIRST_VERSION, now, metadata, skills),)
    last = releases[-1]
    if (last.metadata, last.skills) == (metadata, skills):
        return releases
    bumps = [
        _find_bump(last.skills.get(name), skills.get(name)) for name in {*last.skills, *skills}
    ]
    version = bump_version(last.version, max([Bump.PATCH, *bumps], key=_BUMPS.index))
    return (*releases, CollectionRelease(version, now, metadata, skills))


def _find_bump(old: str | None, new: str | None) -> Bump:
    """Return what a change of one skill means for the collection."""
    if new is None:
        return Bump.MAJOR
    if old is None:
        return Bump.MINOR
    (old_major, old_minor, _), (major, minor, _) = old.split("."), new.split(".")
    if old_major != major:
        return Bump.MAJOR
    return Bump.PATCH if old_minor == minor else Bump.MINOR


def yank_version(log: VersionLog, name: str, version: str, reason: str) -> VersionLog:
    """Return the log with a version marked as yanked. Raises: VersionNotFound."""
    old = log.skills.get(name)
    if old is None or version not in [one.version for one in old.releases]:
        raise VersionNotFound(name, version)
    releases = tuple(
        one._replace(yanked=reason) if one.version == version and one.yanked is None else one
        for one in old.releases
    )
    return replace(log, skills={**log.skills, name: replace(old, releases=releases)})


def render_version_log(log: VersionLog) -> bytes:
    """Render the JSON file."""
    skills = {
        name: {
            "versions": [
                {
                    "version": one.version,
                    "date": one.date,
                    "digest": one.digest,
                    "changes": [*one.changes],
                }
                | ({} if one.yanked is None else {"yanked": one.yanked})
                for one in skill.releases
            ],
            "files": dict(sorted(skill.files.items())),
        }
        for name, skill in sorted(log.skills.items())
    }
    releases = [
        {
            "version": one.version,
            "date": one.date,
            "metadata": one.metadata,
            "skills": dict(one.skills),
        }
        for one in log.releases
    ]
    document = {"format": _FORMAT, "skills": skills, "releases": releases}
    return render_json(document) + b"\n"


def parse_version_log(data: bytes) -> VersionLog:
    """Parse the JSON file. Raises: InvalidJson."""
    document = JsonObject.parse(data)
    if document.require("format", int) != _FORMAT:
        raise document.build_error("format", "is unknown")
    skills = {}
    for name, row in document.require_map("skills"):
        versions = tuple(map(_parse_skill_release, row.require_objects("versions")))
        if not versions:
            raise row.build_error("versions", "is empty")
        skills[name] = SkillLog(versions, _parse_texts(row, "files"))
    releases = tuple(
        CollectionRelease(
            row.require_match("version", _VERSION),
            row.require_match("date", _DATE),
            row.require("metadata", str),
            _parse_texts(row, "skills"),
        )
        for row in document.require_objects("releases")
    )
    return VersionLog(skills, releases)


def _parse_skill_release(row: JsonObject) -> SkillRelease:
    changes = row.require("changes", list)
    if not all(isinstance(one, str) for one in changes):
        raise row.build_error("changes", "must be a list of strings")
    return SkillRelease(
        row.require_match("version", _VERSION),
        row.require_match("date", _DATE),
        row.require("digest", str),
        tuple(changes),
        row.require("yanked", str) if "yanked" in row.fields else None,
    )


def _parse_texts(row: JsonObject, name: str) -> dict[str, str]:
    texts = row.require(name, dict)
    if not all(isinstance(one, str) for one in texts.values()):
        raise row.build_error(name, "must be an object of strings")
    return texts
