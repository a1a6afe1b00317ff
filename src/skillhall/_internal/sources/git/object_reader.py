"""Objects of a repository on disk: listing trees and reading files, without a work tree."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.sources.commit_tree import TreeEntry
from skillhall._internal.sources.git.process import (
    MIN_GIT_VERSION,
    GitLimitExceeded,
    GitNotAvailable,
    GitResult,
    GitRunLimits,
    GitRunOptions,
    GitTimedOut,
    run_git,
)
from skillhall.errors import SourceTimedOut, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from skillhall.errors import SkillhallError

# Seconds for a local command. The deadline of the repository does not apply, because a stale
# version is read after it has passed.
_LOCAL_TIMEOUT = 60.0
_MIB = 1024 * 1024
_MAX_OUTPUT = 64 * _MIB  # bytes of a listing
_MAX_OBJECT_HEADER = 200  # bytes that git writes before and after an object


class CorruptRepository(Exception):
    """Objects are missing from the local repository."""


@dataclass(frozen=True, slots=True)
class ObjectReader:
    """Local repository whose objects are read. It needs no network."""

    folder: str  # the git directory

    def list_tree(self, commit: str) -> list[TreeEntry]:
        """Return all files, links and submodules of a commit.

        Raises: CorruptRepository, TooLarge.
        """
        result = self.run_local("ls-tree", "-r", "-z", "--full-tree", commit)
        if result.exit_code:
            raise CorruptRepository
        entries = []
        for line in result.stdout.split(b"\0")[:-1]:
            head, _, path = line.partition(b"\t")
            mode, _, object_id = head.decode("ascii").split(" ")
            # A name that is not UTF-8 keeps its bytes here, and is rejected as unsafe later.
            entries.append(TreeEntry(path.decode("utf-8", "surrogateescape"), mode, object_id))
        return entries

    def read_sizes(self, ids: Collection[str]) -> dict[str, int]:
        """Return the sizes of files that are present, by id. Raises: CorruptRepository."""
        lines = (line.split(" ") for line in self.query_objects(sorted(ids)))
        return {line[0]: int(line[2]) for line in lines if len(line) == 3}  # noqa: PLR2004

    def read_contents(self, sizes: Mapping[str, int]) -> dict[str, bytes]:
        """Return the bytes of files with known sizes, by id. Raises: CorruptRepository."""
        ids = sorted(sizes)
        stdin = "".join(f"{object_id}\n" for object_id in ids).encode("ascii")
        max_stdout = sum(sizes.values()) + _MAX_OBJECT_HEADER * len(ids)
        result = self.run_local("cat-file", "--batch", stdin=stdin, max_stdout=max_stdout)
        contents, position = {}, 0
        for object_id in ids:
            head = f"{object_id} blob {sizes[object_id]}\n".encode("ascii")
            start, end = position + len(head), position + len(head) + sizes[object_id]
            if (
                result.exit_code
                or result.stdout[position:start] != head
                or result.stdout[end : end + 1] != b"\n"
            ):
                raise CorruptRepository
            contents[object_id] = result.stdout[start:end]
            position = end + 1
        return contents

    def query_objects(self, names: Sequence[str]) -> list[str]:
        """Return a line per object: id, kind and size, or "missing"."""
        stdin = "".join(f"{name}\n" for name in names).encode("ascii")
        result = self.run_local("cat-file", "--batch-check", stdin=stdin)
        lines = result.stdout.decode("ascii", "replace").splitlines()
        if result.exit_code or len(lines) != len(names):
            raise CorruptRepository
        return lines

    def run_local(
        self, *arguments: str, stdin: bytes | None = None, max_stdout: int = _MAX_OUTPUT
    ) -> GitResult:
        """Run git without a remote, so that it cannot use the network."""
        limits = GitRunLimits(time.monotonic() + _LOCAL_TIMEOUT, max_stdout)
        return self._run(arguments, limits, GitRunOptions(stdin=stdin, lock=self._lock))

    def _run(
        self, arguments: Sequence[str], limits: GitRunLimits, options: GitRunOptions
    ) -> GitResult:
        try:
            return run_git(self.folder, arguments, limits, options)
        except GitTimedOut:
            raise SourceTimedOut(self._host, "the request timed out") from None
        except GitLimitExceeded:
            raise self._build_size_error() from None
        except GitNotAvailable:
            problem = f"git {MIN_GIT_VERSION[0]}.{MIN_GIT_VERSION[1]} or newer is required"
            raise SourceUnavailable(self._host, problem, "install or update git") from None

    @property
    def _lock(self) -> int | None:
        """The descriptor of a lock for git to inherit."""
        return None

    @property
    def _host(self) -> str:
        """The name for errors."""
        return self.folder

    def _build_size_error(self) -> SkillhallError:
        return TooLarge(self.folder, _MAX_OUTPUT)
