"""One bare repository on disk, and what is asked of it: fetching, listing, reading objects."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillhall.errors import SourceTimedOut, SourceUnavailable, TooLarge
from skillhall.sources.commit_tree import Entry
from skillhall.sources.git_failures import GitFailed
from skillhall.sources.git_program import (
    OLDEST,
    Bounds,
    NoGit,
    Options,
    OutOfBounds,
    OutOfTime,
    Ran,
    run_git,
    size_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from skillhall.sources.git_program import Progress
    from skillhall.sources.git_remote import Remote

_LOCAL = 60.0  # seconds for what needs no network; a stale copy is read when all other time is over
_MIB = 1024 * 1024
_REFS = "refs/skillhall"  # one per ref that was asked for: what the next fetch builds on
_NO_REF = "couldn't find remote ref: it is no commit"
_FETCH = (
    "fetch",
    "--progress",
    "--no-tags",
    "--no-write-fetch-head",
    "--recurse-submodules=no",
)
_HEADER = 200  # bytes at most that git writes before and after an object


class Damaged(Exception):
    """A repository on our disk that lacks what it should have."""


@dataclass(frozen=True, slots=True)
class Store:
    """A repository that we keep; `host` and `text` name where it came from in errors."""

    folder: str
    host: str
    text: str
    until: float  # on the monotonic clock, for what needs the network
    limit: int  # bytes that may come
    progress: Progress | None = None
    lock: int | None = None  # the descriptor of the lock on the folder

    def make(self, *, is_long: bool = False) -> None:
        """Start anew, empty; ids are long in repositories that use SHA-256. Raises: OSError."""
        shutil.rmtree(self.folder, ignore_errors=True)
        kind = "sha256" if is_long else "sha1"
        done = self._here("init", "--quiet", "--bare", "--template=", f"--object-format={kind}")
        if done.status:
            raise OSError("a repository cannot be made in the cache")

    def size(self) -> int:
        """The bytes of all that came so far."""
        return size_of(os.path.join(self.folder, "objects"))

    def fetch(self, remote: Remote, ref: str, *, name: str) -> str:
        """The commit of a ref, with its trees. Raises: GitFailed, Damaged."""
        place = f"{_REFS}/{name}"
        words = (*_FETCH, "--depth=1", "--filter=blob:none", "--", "origin")
        self._there(remote, (*words, f"+{ref or 'HEAD'}:{place}"))
        return self._commit(place)

    def fill(self, remote: Remote, ids: Collection[str]) -> None:
        """Fetch the contents of files, in one request. Raises: GitFailed."""
        words = (*_FETCH, "--filter=blob:none", "--stdin", "origin")
        given = "".join(f"{one}\n" for one in sorted(ids)).encode("ascii")
        # What we have already says nothing about what is missing.
        self._there(remote, words, ["fetch.negotiationAlgorithm=noop"], given)

    def fetch_whole(self, remote: Remote, ref: str, *, name: str) -> None:
        """Fetch a ref with all its files, for hosts that give none singly. Raises: GitFailed."""
        words = (*_FETCH, "--refetch", "--depth=1", "--", "origin")
        refspec = f"+{ref or 'HEAD'}:{_REFS}/{name}"
        self._there(remote, (*words, refspec), is_partial=False)

    def tree(self, commit: str) -> list[Entry]:
        """All entries below a commit. Raises: Damaged, TooLarge."""
        done = self._here("ls-tree", "-r", "-z", "--full-tree", commit)
        if done.status:
            raise Damaged
        return _parse_tree(done.out)

    def sizes(self, ids: Collection[str]) -> dict[str, int]:
        """The sizes of those files that are here. Raises: Damaged."""
        found = (line.split(" ") for line in self._check(sorted(ids)))
        return {line[0]: int(line[2]) for line in found if len(line) == 3}  # noqa: PLR2004

    def contents(self, sizes: Mapping[str, int]) -> dict[str, bytes]:
        """The bytes of files, whose sizes are known. Raises: Damaged."""
        ids = sorted(sizes)
        given = "".join(f"{one}\n" for one in ids).encode("ascii")
        most = sum(sizes.values()) + _HEADER * len(ids)
        done = self._here("cat-file", "--batch", given=given, out=most)
        contents, at = {}, 0
        for one in ids:
            head = f"{one} blob {sizes[one]}\n".encode("ascii")
            start, end = at + len(head), at + len(head) + sizes[one]
            if done.status or done.out[at:start] != head or done.out[end : end + 1] != b"\n":
                raise Damaged
            contents[one] = done.out[start:end]
            at = end + 1
        return contents

    def _commit(self, place: str) -> str:
        """The commit that one of our refs leads to."""
        commit, thing = (line.split(" ") for line in self._check([f"{place}^{{commit}}", place]))
        if commit[-1] == "missing":
            if thing[-1] == "missing":
                raise Damaged
            raise GitFailed(_NO_REF)  # a tag may name a file or a folder
        return commit[0]

    def _check(self, names: Sequence[str]) -> list[str]:
        """For each name its id, kind and size, or that it is missing."""
        given = "".join(f"{name}\n" for name in names).encode("ascii")
        done = self._here("cat-file", "--batch-check", given=given)
        lines = done.out.decode("ascii", "replace").splitlines()
        if done.status or len(lines) != len(names):
            raise Damaged
        return lines

    def _here(self, *words: str, given: bytes | None = None, out: int = 64 * _MIB) -> Ran:
        """A run that reaches no network: it is told of no remote."""
        return self._run(words, Bounds(time.monotonic() + _LOCAL, out), Options(given=given))

    def _there(
        self,
        remote: Remote,
        words: Sequence[str],
        more: Sequence[str] = (),
        given: bytes | None = None,
        *,
        is_partial: bool = True,
    ) -> None:
        objects = os.path.join(self.folder, "objects")
        bounds = Bounds(self.until, folder=objects, size=self.size() + self.limit)
        configuration = [*remote.configuration(partial=is_partial), *more]
        options = Options(configuration, remote.environment(), given, self.progress)
        done = self._run(words, bounds, options)
        if done.status:
            raise GitFailed(done.said)

    def _run(self, words: Sequence[str], bounds: Bounds, options: Options) -> Ran:
        try:
            return run_git(self.folder, words, bounds, replace(options, lock=self.lock))
        except OutOfTime:
            raise SourceTimedOut(self.host, "it takes too long") from None
        except OutOfBounds:
            raise TooLarge(self.text, self.limit) from None
        except NoGit:
            error = SourceUnavailable(self.host, f"reading it needs git {OLDEST[0]}.{OLDEST[1]}")
            error.hint = "install git, or a newer one"
            raise error from None

    def ask_for(self, remote: Remote, ref: str) -> str | None:
        """The commit that a ref has at the remote; nothing is fetched. Raises: GitFailed."""
        names = _candidates(ref)
        words = ("ls-remote", "--", "origin", *names)
        options = Options(remote.configuration(partial=False), remote.environment())
        done = self._run(words, Bounds(self.until), options)
        if done.status:
            raise GitFailed(done.said)
        lines = (line.split("\t") for line in done.out.decode("ascii", "replace").splitlines())
        found = {line[1]: line[0] for line in lines if len(line) == 2}  # noqa: PLR2004
        return next((found[name] for name in names if name in found), None)


def _parse_tree(listing: bytes) -> list[Entry]:
    """The entries that `git ls-tree -r -z` prints; it does not tell sizes without the files."""
    entries = []
    for line in listing.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, _, object_id = head.decode("ascii").split(" ")
        # A name in another encoding keeps its bytes, and is refused as unsafe later.
        entries.append(Entry(path.decode("utf-8", "surrogateescape"), mode, object_id))
    return entries


def _candidates(ref: str) -> list[str]:
    """The full names that git tries for a ref, in order; a tag leads to its commit."""
    if not ref:
        return ["HEAD"]
    plain = [f"refs/{ref}", f"refs/tags/{ref}", f"refs/heads/{ref}"]
    plain = [ref, *plain] if ref == "HEAD" or ref.startswith("refs/") else plain
    return [f"{name}{peeled}" for name in plain for peeled in ("^{}", "")]
