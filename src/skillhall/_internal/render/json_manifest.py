"""File manifest of a skill as JSON values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from skillhall._internal.skill.bundle import SkillFile


class ManifestFileJson(TypedDict):
    """One file of a skill."""

    path: str
    size: int
    digest: str
    executable: bool


def build_manifest(files: Iterable[SkillFile]) -> list[ManifestFileJson]:
    """Serialize files in order. Reads each file for its digest.

    Raises: SkillhallError if a file cannot be read.
    """
    return [
        {
            "path": file.path.text,
            "size": file.size,
            "digest": file.digest(),
            "executable": file.executable,
        }
        for file in files
    ]
