"""A publication: the skills, their versions and the metadata that all targets render."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.publishing.file_tree import FileTree
    from skillhall._internal.publishing.publish_config import PublishMetadata
    from skillhall._internal.publishing.version_log import (
        CollectionRelease,
        SkillRelease,
        VersionLog,
    )


class PublishedSkill(NamedTuple):
    """A skill as it is published."""

    name: str
    description: str
    files: FileTree
    release: SkillRelease


@dataclass(frozen=True, slots=True)
class Publication:
    """The skills that are published, by name, with all versions so far."""

    metadata: PublishMetadata
    skills: Sequence[PublishedSkill]
    log: VersionLog

    @property
    def release(self) -> CollectionRelease:
        """The version of the collection."""
        return self.log.releases[-1]

    def place_skills(self, folder: str) -> dict[str, tuple[bytes, int]]:
        """Return the files of all skills, below a folder."""
        return {
            f"{folder}/{skill.name}/{path}": file
            for skill in self.skills
            for path, file in skill.files.items()
        }

    def iter_history(self) -> Iterator[tuple[str, SkillRelease]]:
        """Iterate over all versions of all skills, the latest first, with the names."""
        rows = [(name, one) for name, log in self.log.skills.items() for one in log.releases]
        rows.sort(key=lambda row: row[0])
        yield from sorted(rows, key=lambda row: row[1].date, reverse=True)


def build_author(metadata: PublishMetadata) -> Mapping[str, str]:
    """Return the author as an object of JSON manifests."""
    return {"name": metadata.author} | ({"email": metadata.email} if metadata.email else {})
