"""Sandboxes: the files of an agent's environment, and copying skills into them."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from skillhall._internal.api.compat.skills_module import (
    SkillBundle,
    SkillList,
    SkillMetadata,
    find_skill_md,
    load_skill_bundle,
    parse_skill_metadata,
)
from skillhall._internal.fs.handles import EntryKind, FolderHandle, open_folder_at
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.profiles import SKILLS_MODULE
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.bundle_reader import read_file_at
from skillhall.errors import NotAFile, SkillFileNotFound, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SKILLS_FOLDER = ".skills"  # in the sandbox
_EXECUTABLE = 0o111


class Sandbox(Protocol):
    """The files of an agent's environment. Paths are relative, with forward slashes.

    >>> def list_missing(sandbox: Sandbox, paths: list[str]) -> list[str]:
    ...     return [path for path in paths if not sandbox.exists(path)]
    >>> list_missing(MemorySandbox(), ["notes.md"])
    ['notes.md']
    """

    def read_file(self, path: str) -> bytes:
        """Return the content of a file. Raises: SkillFileNotFound, UnsafePath, NotAFile."""

    def write_file(self, path: str, data: bytes) -> None:
        """Write a file and create its parent folders. Raises: UnsafePath, NotAFile."""

    def exists(self, path: str) -> bool:
        """Whether a file or folder exists. Raises: UnsafePath."""

    def make_dir(self, path: str) -> None:
        """Create a folder and its parents, if missing. Raises: UnsafePath."""


@runtime_checkable
class SupportsExecutable(Protocol):
    """A sandbox that supports executable files, which is optional."""

    def set_executable(self, path: str, executable: bool) -> None:  # noqa: FBT001 - a setter
        """Set or clear the executable bit of a file.

        Raises: SkillFileNotFound, UnsafePath, NotAFile.
        """


def setup_agent_environment(
    sandbox: Sandbox, skills: Iterable[SkillBundle | SkillMetadata]
) -> SkillList:
    """Copy skills to `.skills/<name>/` in a sandbox; return them with their new paths.

    All skills are checked before anything is written. Of several skills with the same name, only
    the first is copied. A sandbox with `set_executable` gets the executable bits too.
    Raises: the errors of `load_skill_bundle` and of the sandbox.

    ```python
    from skillhall import discover_skills, setup_agent_environment
    from skillhall.compat import MemorySandbox

    sandbox = MemorySandbox()
    skills = setup_agent_environment(sandbox, discover_skills("skills"))
    print([skill.path for skill in skills])
    ```
    """
    files: dict[str, bytes] = {}
    executables: set[str] = set()
    copied: dict[str, SkillMetadata] = {}
    findings: list[Finding] = []
    for skill in skills:
        bundle = (
            skill if isinstance(skill, SkillBundle) else load_skill_bundle(Path(skill.path).parent)
        )
        skill_md = find_skill_md(bundle.files, bundle.name)
        metadata = parse_skill_metadata(bundle.files[skill_md], f"{bundle.name}/{skill_md}")
        name = metadata.name
        metadata = replace(metadata, path=_sandbox_path(name, skill_md))
        if name in copied:
            message = f"{name!r} already exists; the skill in {bundle.name!r} is skipped"
            findings.append(Finding(Code.SHADOWED, message, path=metadata.path, skill=name))
            continue
        copied[name] = metadata
        findings += bundle.findings
        files |= {_sandbox_path(name, path): data for path, data in bundle.files.items()}
        executables |= {_sandbox_path(name, path) for path in bundle.executable}
    for path, data in files.items():
        sandbox.write_file(path, data)
        if isinstance(sandbox, SupportsExecutable):
            sandbox.set_executable(path, path in executables)
    return SkillList(copied.values(), SKILLS_MODULE.load_policy.judge(findings))


def _sandbox_path(name: str, path: str) -> str:
    return RelativePath.parse(f"{SKILLS_FOLDER}/{name}/{RelativePath.parse(path)}").text


class MemorySandbox:
    """A sandbox that keeps its files in memory.

    >>> sandbox = MemorySandbox()
    >>> sandbox.write_file("notes/today.md", b"Hello")
    >>> sandbox.read_file("notes/today.md")
    b'Hello'
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.executable: set[str] = set()  # paths
        self._folders: set[str] = set()

    def read_file(self, path: str) -> bytes:
        """Return the content of a file. Raises: SkillFileNotFound, UnsafePath, NotAFile."""
        text = RelativePath.parse(path).text
        if text in self._folders:
            raise NotAFile(text)
        if text not in self.files:
            raise SkillFileNotFound(text)
        return self.files[text]

    def write_file(self, path: str, data: bytes) -> None:
        """Write a file and create its parent folders. Raises: UnsafePath, NotAFile."""
        file = RelativePath.parse(path)
        if file.text in self._folders:
            raise NotAFile(file.text)
        self._make_folders(file.parts[:-1], file)
        self.files[file.text] = data

    def exists(self, path: str) -> bool:
        """Whether a file or folder exists. Raises: UnsafePath."""
        text = RelativePath.parse(path).text
        return text in self.files or text in self._folders

    def make_dir(self, path: str) -> None:
        """Create a folder and its parents, if missing. Raises: UnsafePath."""
        folder = RelativePath.parse(path)
        self._make_folders(folder.parts, folder)

    def set_executable(self, path: str, executable: bool) -> None:  # noqa: FBT001 - a setter
        """Set or clear the executable bit of a file.

        Raises: SkillFileNotFound, UnsafePath, NotAFile.
        """
        self.read_file(path)
        change = self.executable.add if executable else self.executable.discard
        change(RelativePath.parse(path).text)

    def _make_folders(self, parts: Sequence[str], requested: RelativePath) -> None:
        folders = {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}
        if not folders.isdisjoint(self.files):
            raise _build_blocked_error(requested)
        self._folders |= folders


class FolderSandbox:
    """A sandbox in a local folder. Links are never followed.

    >>> sandbox = FolderSandbox("environment")
    >>> sandbox.write_file("notes/today.md", b"Hello")
    >>> sandbox.exists("notes")
    True
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        path = Path(root).expanduser().absolute()
        path.mkdir(parents=True, exist_ok=True)
        self.root: str = str(path)

    def read_file(self, path: str) -> bytes:
        """Read a file. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
        return read_file_at(FolderHandle(self.root), RelativePath.parse(path))

    def write_file(self, path: str, data: bytes) -> None:
        """Write a file and create its parent folders. Raises: UnsafePath, NotAFile.

        An existing file keeps its permissions.
        """
        file = RelativePath.parse(path)
        name = file.parts[-1]
        with self._open_or_create(file.parts[:-1], file) as folder:
            kind = folder.entry_kind(name)
            if kind is EntryKind.LINK:
                raise _build_blocked_error(file)
            folder.write_file(name, data, folder.mode(name) if kind is EntryKind.FILE else 0o644)

    def set_executable(self, path: str, executable: bool) -> None:  # noqa: FBT001 - a setter
        """Set or clear the executable bit of a file.

        Raises: SkillFileNotFound, UnsafePath, NotAFile.
        """
        file = RelativePath.parse(path)
        try:
            with open_folder_at(FolderHandle(self.root, "/".join(file.parts[:-1]))) as folder:
                opened = folder.open_file(file.parts[-1])
        except FileNotFoundError:
            raise SkillFileNotFound(file.text) from None
        except OSError:
            raise _build_blocked_error(file) from None
        try:
            mode = stat.S_IMODE(opened.stat.st_mode)
            # Grant execution to everyone who has read access.
            new_mode = mode | (mode & 0o444) >> 2 if executable else mode & ~_EXECUTABLE
            if new_mode != mode and hasattr(os, "fchmod"):  # missing on Windows
                os.fchmod(opened.descriptor, new_mode)
        finally:
            os.close(opened.descriptor)

    def exists(self, path: str) -> bool:
        """Whether a file or folder, not a link, exists. Raises: UnsafePath."""
        *parents, name = RelativePath.parse(path).parts
        try:
            with open_folder_at(FolderHandle(self.root, "/".join(parents))) as folder:
                mode = folder.stat(name).st_mode
        except OSError:
            return False
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode)

    def make_dir(self, path: str) -> None:
        """Create a folder and its parents, if missing. Raises: UnsafePath."""
        folder = RelativePath.parse(path)
        with self._open_or_create(folder.parts, folder):
            pass

    @contextlib.contextmanager
    def _open_or_create(
        self, parts: Sequence[str], requested: RelativePath
    ) -> Iterator[WritableFolder]:
        with contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(WritableFolder(self.root))
                for part in parts:
                    folder = stack.enter_context(folder.open_folder(part, create=True))
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise _build_blocked_error(requested) from None
                raise
            yield folder


def _build_blocked_error(requested: RelativePath) -> UnsafePath:
    return UnsafePath(requested.text, "it leads through a link or a file")
