"""Listings and file manifests as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from skillhall._internal.policy.visibility import filter_visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.render.listing import ListingEntry
    from skillhall._internal.skill.bundle import SkillFile


class ManifestFileJson(TypedDict):
    """One file of a skill."""

    path: str
    size: int
    digest: str
    executable: bool


class ListingEntryJson(TypedDict):
    """One skill of a listing."""

    name: str
    description: str
    location: str


def build_manifest(files: Iterable[SkillFile]) -> list[ManifestFileJson]:
    """Serialize files in order. Reads each one for its digest, which may raise."""
    return [
        {
            "path": file.path.text,
            "size": file.size,
            "digest": file.digest(),
            "executable": file.executable,
        }
        for file in files
    ]


def serialize_listing(entries: Iterable[ListingEntry]) -> list[ListingEntryJson]:
    """Serialize the skills that are not hidden from models."""
    return [
        {"name": entry.name, "description": entry.description, "location": entry.location}
        for entry in filter_visible(entries)
    ]
