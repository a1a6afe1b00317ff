"""One bare repository on disk, and what is asked of it: fetching, listing, reading objects."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillhall._internal.sources.commit_tree import TreeEntry
from skillhall._internal.sources.git.failures import GitCommandError
from skillhall._internal.sources.git.process import (
    MIN_GIT_VERSION,
    GitLimitExceeded,
    GitNotAvailable,
    GitResult,
    GitRunLimits,
    GitRunOptions,
    GitTimedOut,
    measure_folder,
    run_git,
)
from skillhall.errors import SourceTimedOut, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from skillhall._internal.sources.git.process import GitProgress
    from skillhall._internal.sources.git.remote import Remote

_LOCAL_TIMEOUT = (
    60.0  # seconds for what needs no network; a stale copy is read when all other time is over
)
_MIB = 1024 * 1024
_REF_PREFIX = "refs/skillhall"  # one per ref that was asked for: what the next fetch builds on
_NOT_A_COMMIT_MESSAGE = "couldn't find remote ref: it is no commit"
_FETCH = (
    "fetch",
    "--progress",
    "--no-tags",
    "--no-write-fetch-head",
    "--recurse-submodules=no",
)
_MAX_OBJECT_HEADER = 200  # bytes at most that git writes before and after an object


class CorruptRepository(Exception):
    """A repository on our disk that lacks what it should have."""


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A repository that we keep; `host` and `text` name where it came from in errors."""

    folder: str
    host: str
    source_text: str
    deadline: float  # on the monotonic clock, for what needs the network
    max_bytes: int  # bytes that may come
    progress: GitProgress | None = None
    lock: int | None = None  # the descriptor of the lock on the folder

    def create(self, *, use_sha256: bool = False) -> None:
        """Start anew, empty; ids are long in repositories that use SHA-256. Raises: OSError."""
        shutil.rmtree(self.folder, ignore_errors=True)
        kind = "sha256" if use_sha256 else "sha1"
        done = self._run_local(
            "init", "--quiet", "--bare", "--template=", f"--object-format={kind}"
        )
        if done.exit_code:
            raise OSError("a repository cannot be made in the cache")

    def measure_size(self) -> int:
        """The bytes of all that came so far."""
        return measure_folder(os.path.join(self.folder, "objects"))

    def fetch_commit(self, remote: Remote, ref: str, *, ref_name: str) -> str:
        """The commit of a ref, with its trees. Raises: GitFailed, Damaged."""
        place = f"{_REF_PREFIX}/{ref_name}"
        words = (*_FETCH, "--depth=1", "--filter=blob:none", "--", "origin")
        self._run_remote(remote, (*words, f"+{ref or 'HEAD'}:{place}"))
        return self._resolve_local_ref(place)

    def fetch_blobs(self, remote: Remote, ids: Collection[str]) -> None:
        """Fetch the contents of files, in one request. Raises: GitFailed."""
        words = (*_FETCH, "--filter=blob:none", "--stdin", "origin")
        given = "".join(f"{one}\n" for one in sorted(ids)).encode("ascii")
        # What we have already says nothing about what is missing.
        self._run_remote(remote, words, ["fetch.negotiationAlgorithm=noop"], given)

    def fetch_all_files(self, remote: Remote, ref: str, *, ref_name: str) -> None:
        """Fetch a ref with all its files, for hosts that give none singly. Raises: GitFailed."""
        words = (*_FETCH, "--refetch", "--depth=1", "--", "origin")
        refspec = f"+{ref or 'HEAD'}:{_REF_PREFIX}/{ref_name}"
        self._run_remote(remote, (*words, refspec), is_partial=False)

    def list_tree(self, commit: str) -> list[TreeEntry]:
        """All entries below a commit. Raises: Damaged, TooLarge."""
        done = self._run_local("ls-tree", "-r", "-z", "--full-tree", commit)
        if done.exit_code:
            raise CorruptRepository
        return _parse_tree(done.stdout)

    def read_sizes(self, ids: Collection[str]) -> dict[str, int]:
        """The sizes of those files that are here. Raises: Damaged."""
        found = (line.split(" ") for line in self._query_objects(sorted(ids)))
        return {line[0]: int(line[2]) for line in found if len(line) == 3}  # noqa: PLR2004

    def read_contents(self, sizes: Mapping[str, int]) -> dict[str, bytes]:
        """The bytes of files, whose sizes are known. Raises: Damaged."""
        ids = sorted(sizes)
        given = "".join(f"{one}\n" for one in ids).encode("ascii")
        most = sum(sizes.values()) + _MAX_OBJECT_HEADER * len(ids)
        done = self._run_local("cat-file", "--batch", stdin=given, max_stdout=most)
        contents, at = {}, 0
        for one in ids:
            head = f"{one} blob {sizes[one]}\n".encode("ascii")
            start, end = at + len(head), at + len(head) + sizes[one]
            if (
                done.exit_code
                or done.stdout[at:start] != head
                or done.stdout[end : end + 1] != b"\n"
            ):
                raise CorruptRepository
            contents[one] = done.stdout[start:end]
            at = end + 1
        return contents

    def _resolve_local_ref(self, ref_name: str) -> str:
        """The commit that one of our refs leads to."""
        commit, thing = (
            line.split(" ") for line in self._query_objects([f"{ref_name}^{{commit}}", ref_name])
        )
        if commit[-1] == "missing":
            if thing[-1] == "missing":
                raise CorruptRepository
            raise GitCommandError(_NOT_A_COMMIT_MESSAGE)  # a tag may name a file or a folder
        return commit[0]

    def _query_objects(self, names: Sequence[str]) -> list[str]:
        """For each name its id, kind and size, or that it is missing."""
        given = "".join(f"{name}\n" for name in names).encode("ascii")
        done = self._run_local("cat-file", "--batch-check", stdin=given)
        lines = done.stdout.decode("ascii", "replace").splitlines()
        if done.exit_code or len(lines) != len(names):
            raise CorruptRepository
        return lines

    def _run_local(
        self, *arguments: str, stdin: bytes | None = None, max_stdout: int = 64 * _MIB
    ) -> GitResult:
        """A run that reaches no network: it is told of no remote."""
        return self._run(
            arguments,
            GitRunLimits(time.monotonic() + _LOCAL_TIMEOUT, max_stdout),
            GitRunOptions(stdin=stdin),
        )

    def _run_remote(
        self,
        remote: Remote,
        arguments: Sequence[str],
        extra_configuration: Sequence[str] = (),
        stdin: bytes | None = None,
        *,
        is_partial: bool = True,
    ) -> None:
        objects = os.path.join(self.folder, "objects")
        bounds = GitRunLimits(
            self.deadline,
            measured_folder=objects,
            max_folder_size=self.measure_size() + self.max_bytes,
        )
        configuration = [*remote.build_configuration(partial=is_partial), *extra_configuration]
        options = GitRunOptions(configuration, remote.build_environment(), stdin, self.progress)
        done = self._run(arguments, bounds, options)
        if done.exit_code:
            raise GitCommandError(done.stderr)

    def _run(
        self, arguments: Sequence[str], limits: GitRunLimits, options: GitRunOptions
    ) -> GitResult:
        try:
            return run_git(self.folder, arguments, limits, replace(options, lock=self.lock))
        except GitTimedOut:
            raise SourceTimedOut(self.host, "it takes too long") from None
        except GitLimitExceeded:
            raise TooLarge(self.source_text, self.max_bytes) from None
        except GitNotAvailable:
            error = SourceUnavailable(
                self.host, f"reading it needs git {MIN_GIT_VERSION[0]}.{MIN_GIT_VERSION[1]}"
            )
            error.hint = "install git, or a newer one"
            raise error from None

    def resolve_remote_ref(self, remote: Remote, ref: str) -> str | None:
        """The commit that a ref has at the remote; nothing is fetched. Raises: GitFailed."""
        names = _full_ref_names(ref)
        words = ("ls-remote", "--", "origin", *names)
        options = GitRunOptions(
            remote.build_configuration(partial=False), remote.build_environment()
        )
        done = self._run(words, GitRunLimits(self.deadline), options)
        if done.exit_code:
            raise GitCommandError(done.stderr)
        lines = (line.split("\t") for line in done.stdout.decode("ascii", "replace").splitlines())
        found = {line[1]: line[0] for line in lines if len(line) == 2}  # noqa: PLR2004
        return next((found[name] for name in names if name in found), None)


def _parse_tree(listing: bytes) -> list[TreeEntry]:
    """The entries that `git ls-tree -r -z` prints; it does not tell sizes without the files."""
    entries = []
    for line in listing.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, _, object_id = head.decode("ascii").split(" ")
        # A name in another encoding keeps its bytes, and is refused as unsafe later.
        entries.append(TreeEntry(path.decode("utf-8", "surrogateescape"), mode, object_id))
    return entries


def _full_ref_names(ref: str) -> list[str]:
    """The full names that git tries for a ref, in order; a tag leads to its commit."""
    if not ref:
        return ["HEAD"]
    plain = [f"refs/{ref}", f"refs/tags/{ref}", f"refs/heads/{ref}"]
    plain = [ref, *plain] if ref == "HEAD" or ref.startswith("refs/") else plain
    return [f"{name}{peeled}" for name in plain for peeled in ("^{}", "")]
