"""Sandboxes: where an agent works, as small as we need it; and seeding skills into one."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from skillhall.agents.skills_module import (
    SkillBundle,
    SkillList,
    SkillMetadata,
    load_skill_bundle,
    parse_skill_metadata,
    skill_md_of,
)
from skillhall.errors import NotAFile, SkillFileNotFound, UnsafePath
from skillhall.policy.profiles import SKILLS_MODULE
from skillhall.skill.bundle import RelativePath
from skillhall.skill.finding import Code, Finding
from skillhall.sources.bundles import read_in_place
from skillhall.sources.safety import HAS_HANDLES, Place, opened_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SEED = ".skills"  # the folder of a sandbox that skills are put into


class Sandbox(Protocol):
    """The files of an agent's workplace. Paths are relative, with forward slashes."""

    def read_file(self, path: str) -> bytes:
        """The bytes of a file. Raises: SkillFileNotFound, UnsafePath, NotAFile."""

    def write_file(self, path: str, data: bytes) -> None:
        """Make or replace a file, and the folders above it. Raises: UnsafePath, NotAFile."""

    def exists(self, path: str) -> bool:
        """Whether a file or folder stands there. Raises: UnsafePath."""

    def make_dir(self, path: str) -> None:
        """Make a folder and those above it; it may exist. Raises: UnsafePath."""


def setup_agent_environment(
    sandbox: Sandbox, skills: Iterable[SkillBundle | SkillMetadata]
) -> SkillList:
    """The skills, put into the sandbox at `.skills/<name>/`, with their paths there.

    All of them are checked before anything is written; the first of a name wins. Discovered skills
    are bundled first. Raises: what `load_skill_bundle` and the sandbox raise.
    """
    files: dict[str, bytes] = {}
    seeded: dict[str, SkillMetadata] = {}
    findings: list[Finding] = []
    for skill in skills:
        bundle = _bundled(skill)
        metadata = _in_sandbox(bundle)
        if metadata.name in seeded:
            findings.append(_shadowed(metadata, bundle))
            continue
        seeded[metadata.name] = metadata
        findings += bundle.findings
        files |= {_seed_path(metadata.name, path): data for path, data in bundle.files.items()}
    for path, data in files.items():
        sandbox.write_file(path, data)
    return SkillList(seeded.values(), SKILLS_MODULE.load.judge(findings))


def _bundled(skill: SkillBundle | SkillMetadata) -> SkillBundle:
    return skill if isinstance(skill, SkillBundle) else load_skill_bundle(Path(skill.path).parent)


def _in_sandbox(bundle: SkillBundle) -> SkillMetadata:
    file = skill_md_of(bundle.files, bundle.name)
    metadata = parse_skill_metadata(bundle.files[file], f"{bundle.name}/{file}")
    return replace(metadata, path=_seed_path(metadata.name, file))


def _seed_path(name: str, path: str) -> str:
    return RelativePath.parse(f"{SEED}/{name}/{RelativePath.parse(path)}").text


def _shadowed(metadata: SkillMetadata, bundle: SkillBundle) -> Finding:
    message = f"{metadata.name!r} is there already; the skill in {bundle.name!r} is left out"
    return Finding(Code.SHADOWED, message, path=metadata.path, skill=metadata.name)


class MemorySandbox:
    """A sandbox that keeps its files in memory."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._folders: set[str] = set()

    def read_file(self, path: str) -> bytes:
        """The bytes of a file. Raises: SkillFileNotFound, UnsafePath, NotAFile."""
        text = RelativePath.parse(path).text
        if text in self._folders:
            raise NotAFile(text)
        if text not in self.files:
            raise SkillFileNotFound(text)
        return self.files[text]

    def write_file(self, path: str, data: bytes) -> None:
        """Make or replace a file, and the folders above it. Raises: UnsafePath, NotAFile."""
        file = RelativePath.parse(path)
        if file.text in self._folders:
            raise NotAFile(file.text)
        self._make(file.parts[:-1], file)
        self.files[file.text] = data

    def exists(self, path: str) -> bool:
        """Whether a file or folder stands there. Raises: UnsafePath."""
        text = RelativePath.parse(path).text
        return text in self.files or text in self._folders

    def make_dir(self, path: str) -> None:
        """Make a folder and those above it; it may exist. Raises: UnsafePath."""
        folder = RelativePath.parse(path)
        self._make(folder.parts, folder)

    def _make(self, parts: Sequence[str], asked: RelativePath) -> None:
        above = {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}
        if not above.isdisjoint(self.files):
            raise _in_the_way(asked)
        self._folders |= above


class FolderSandbox:
    """A sandbox in a local folder. Nothing is read or written through a link, or outside."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        path = Path(root).expanduser().absolute()
        path.mkdir(parents=True, exist_ok=True)
        self.root = str(path)

    def read_file(self, path: str) -> bytes:
        """The bytes of a file. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
        return read_in_place(Place(self.root), RelativePath.parse(path))

    def write_file(self, path: str, data: bytes) -> None:
        """Make or replace a file, and the folders above it. Raises: UnsafePath, NotAFile."""
        file = RelativePath.parse(path)
        with self._made(file.parts[:-1], file) as folder:
            folder.put(file, data)

    def exists(self, path: str) -> bool:
        """Whether a file or folder stands there; a link does not count. Raises: UnsafePath."""
        *above, name = RelativePath.parse(path).parts
        try:
            with opened_place(Place(self.root, "/".join(above))) as folder:
                mode = folder.peek(name).st_mode
        except OSError:
            return False
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode)

    def make_dir(self, path: str) -> None:
        """Make a folder and those above it; it may exist. Raises: UnsafePath."""
        folder = RelativePath.parse(path)
        with self._made(folder.parts, folder):
            pass

    @contextlib.contextmanager
    def _made(self, parts: Sequence[str], asked: RelativePath) -> Iterator[_Writable]:
        folder = _Writable.at(self.root)
        try:
            for part in parts:
                folder = folder.made(part)
            yield folder
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise _in_the_way(asked) from None
            raise
        finally:
            folder.close()


_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class _Writable:
    """A folder to write into: behind a handle where the system has them, else behind its path."""

    path: str
    handle: int | None

    @classmethod
    def at(cls, path: str) -> _Writable:
        return cls(path, os.open(path, _FOLDER) if HAS_HANDLES else None)

    def made(self, name: str) -> _Writable:
        """The folder `name` in this one, which is given back. Raises: OSError."""
        path = self._name(name)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, dir_fd=self.handle)
        if self.handle is None:
            if not stat.S_ISDIR(Path(path).lstat().st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            return _Writable(path, None)
        below = os.open(path, _FOLDER | _NO_FOLLOW, dir_fd=self.handle)
        os.close(self.handle)
        return _Writable(path, below)

    def put(self, file: RelativePath, data: bytes) -> None:
        """Write beside the file, then take its place: a second name of it keeps the old bytes."""
        name = file.parts[-1]
        self._refuse_unless_a_file(name, file)
        staged = self._name(f".skillhall-{secrets.token_hex(8)}")
        descriptor = os.open(staged, _NEW, 0o666, dir_fd=self.handle)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            os.replace(staged, self._name(name), src_dir_fd=self.handle, dst_dir_fd=self.handle)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(staged, dir_fd=self.handle)
            raise

    def close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)

    def _refuse_unless_a_file(self, name: str, asked: RelativePath) -> None:
        try:
            found = os.stat(self._name(name), dir_fd=self.handle, follow_symlinks=False)
        except FileNotFoundError:
            return
        if stat.S_ISLNK(found.st_mode):
            raise _in_the_way(asked)
        if not stat.S_ISREG(found.st_mode):
            raise NotAFile(asked.text)

    def _name(self, name: str) -> str:
        return name if self.handle is not None else str(Path(self.path, name))


def _in_the_way(asked: RelativePath) -> UnsafePath:
    return UnsafePath(asked.text, "a link or a file stands in its way")
