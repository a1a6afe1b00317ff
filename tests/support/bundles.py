"""Bundles in memory."""

from collections.abc import Mapping

from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.finding import Finding
from skillhall._internal.sources.archive.source import read_loose_files
from skillhall.errors import SkillFileNotFound


def make_bundle(
    files: dict[str, bytes],
    *,
    executable: frozenset[str] = frozenset(),
    unreadable: frozenset[str] = frozenset(),
    findings: tuple[Finding, ...] = (),
) -> Bundle:
    """Create the bundle of these files, in path order."""

    def skill_file(path: str, data: bytes) -> SkillFile:
        def read() -> bytes:
            if path in unreadable:
                raise SkillFileNotFound(path)
            return data

        return SkillFile(RelativePath.parse(path), len(data), path in executable, read)

    return Bundle(
        "skill", {path: skill_file(path, files[path]) for path in sorted(files)}, findings
    )


def build_single_bundle(files: Mapping[str, bytes], name: str) -> Bundle:
    """Create the bundle of an uploaded folder called `name`, which contains one skill."""
    [bundle] = read_loose_files([*files.items()], name)
    return bundle
