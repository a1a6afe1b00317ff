"""The well-known index, by which installers discover the skills of a site.

Version 0.2 has the URL and digest of one download per skill. Version 0.1 has the paths of all
files, relative to the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WELL_KNOWN = "/.well-known/agent-skills"
LEGACY_WELL_KNOWN = "/.well-known/skills"
INDEX_FILE = "index.json"
INDEX_SCHEMA_URL = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"


class IndexEntry(NamedTuple):
    """A skill in version 0.2 of the index."""

    name: str
    description: str
    url: str  # relative to the index, or absolute
    digest: str  # of the download
    is_archive: bool  # or SKILL.md alone


class LegacyIndexEntry(NamedTuple):
    """A skill in version 0.1 of the index."""

    name: str
    description: str
    files: Sequence[str]  # SKILL.md is first


def build_index(entries: Iterable[IndexEntry]) -> dict[str, object]:
    """Return version 0.2 of the index."""
    skills = [
        {
            "name": one.name,
            "type": "archive" if one.is_archive else "skill-md",
            "description": one.description,
            "url": one.url,
            "digest": one.digest,
        }
        for one in entries
    ]
    return {"$schema": INDEX_SCHEMA_URL, "skills": skills}


def build_legacy_index(entries: Iterable[LegacyIndexEntry]) -> dict[str, object]:
    """Return version 0.1 of the index."""
    skills = [
        {"name": one.name, "description": one.description, "files": [*one.files]} for one in entries
    ]
    return {"skills": skills}
