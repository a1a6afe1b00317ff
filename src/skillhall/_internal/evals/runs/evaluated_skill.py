"""A version of a skill that is evaluated: its files and digests."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from skillhall._internal.catalog.skill_content import ALL_FILES_SCAN
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.skill.bundle import digest_files
from skillhall._internal.sources.folder.bundle_reader import (
    load_into_memory,
    open_bundle,
    read_bundle,
)
from skillhall._internal.sources.git.local_revision import read_local_revision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.skill.bundle import Bundle

_EVALS = "evals/"
_MODE, _EXECUTABLE_MODE = 0o644, 0o755
_SCRIPTS = "scripts/"
_SCRIPT_SUFFIXES = (".py", ".sh", ".bash", ".js", ".mjs", ".ts", ".rb", ".pl", ".ps1", ".bat")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedSkill:
    """A skill at one moment. It has no files if it is only known from a recording."""

    name: str
    folder: str  # the name of its folder
    label: str  # its origin: a path or a revision
    digest: str  # as in lock files and approvals
    agent_digest: str  # of the files that an agent gets
    files: Mapping[str, tuple[bytes, int]] = field(default_factory=dict)  # content and mode

    @classmethod
    def of_files(
        cls, name: str, folder: str, label: str, files: Mapping[str, tuple[bytes, int]]
    ) -> Self:
        """Return a skill with these files."""
        agent_files = _select_agent_files(files)
        executable = sorted(path for path, (_, mode) in agent_files.items() if mode & 0o100)
        return cls(
            name=name,
            folder=folder,
            label=label,
            digest=digest_files(files),
            agent_digest="\n".join((digest_files(agent_files), *executable)),
            files=files,
        )

    @property
    def has_scripts(self) -> bool:
        """Whether the skill contains code that an agent could run."""
        return contains_scripts(_select_agent_files(self.files))

    def write_to(self, folder: Path) -> None:
        """Write the files that an agent gets to a new folder in `folder`. Raises: OSError."""
        with WritableFolder(str(folder)) as parent:
            parent.create_folder(self.folder, _select_agent_files(self.files), fsync=False)


def contains_scripts(files: Mapping[str, tuple[bytes, int]]) -> bool:
    """Whether one of the files is code, by its path or its mode."""
    return any(
        mode & 0o100 or path.startswith(_SCRIPTS) or path.lower().endswith(_SCRIPT_SUFFIXES)
        for path, (_, mode) in files.items()
    )


def read_evaluated_skill(name: str, path: str) -> EvaluatedSkill:
    """Read the files of a skill's folder. Links are left out. Raises: SkillFileNotFound."""
    files = read_files(open_bundle(FolderHandle(path), ALL_FILES_SCAN))
    return EvaluatedSkill.of_files(name, Path(path).absolute().name, path, files)


def read_other_version(path: str, version: str) -> Bundle:
    """Return another version of the skill at `path`: a folder, else a git revision.

    The version is read into memory.
    Raises: SourceNotFound if there is no such folder or revision, SkillhallError.
    """
    if Path(version).is_dir():
        return read_bundle(FolderHandle(version), ALL_FILES_SCAN)
    return load_into_memory(read_local_revision(path, version))


def read_files(bundle: Bundle) -> dict[str, tuple[bytes, int]]:
    """Return the content and mode of the files. Raises: SkillhallError."""
    return {
        path: (file.read(), _EXECUTABLE_MODE if file.executable else _MODE)
        for path, file in bundle.files.items()
    }


def _select_agent_files(
    files: Mapping[str, tuple[bytes, int]],
) -> dict[str, tuple[bytes, int]]:
    """Return the files without the evals, which contain the solutions."""
    return {path: file for path, file in files.items() if not path.startswith(_EVALS)}
