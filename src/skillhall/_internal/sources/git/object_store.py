"""Bare repository on disk: fetching, listing and reading objects."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.sources.git.clone_cache import ref_file_name
from skillhall._internal.sources.git.failures import GitCommandError, GitFailureKind
from skillhall._internal.sources.git.object_reader import CorruptRepository, ObjectReader
from skillhall._internal.sources.git.process import GitRunLimits, GitRunOptions, measure_folder
from skillhall.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from skillhall._internal.sources.git.remote import Remote, RemoteRepository
    from skillhall.errors import SkillhallError

_REF_PREFIX = "refs/skillhall"  # one per requested ref; the next fetch builds on it
# Begins like a message of git, so that it is classified as REF_NOT_FOUND.
_NOT_A_COMMIT_MESSAGE = "couldn't find remote ref: it is not a commit"
_FETCH = ("fetch", "--progress", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no")


class RemoteRef(NamedTuple):
    """A branch, a tag or another ref of a remote."""

    name: str  # such as `refs/tags/v1`, or `refs/tags/v1^{}` for the commit of an annotated tag
    commit: str

    @property
    def is_tag(self) -> bool:
        """Whether it is a tag, which authors are expected not to move."""
        return self.name.startswith("refs/tags/")


@dataclass(frozen=True, slots=True)
class ObjectStore(ObjectReader):
    """Local bare repository, and the remote repository that it is fetched from."""

    repository: RemoteRepository
    lock: int | None = None  # descriptor of the lock on the folder, for git to inherit

    def create(self, *, use_sha256: bool = False) -> None:
        """Create an empty repository in place of the old one. Raises: OSError."""
        shutil.rmtree(self.folder, ignore_errors=True)
        kind = "sha256" if use_sha256 else "sha1"
        result = self.run_local(
            "init", "--quiet", "--bare", "--template=", f"--object-format={kind}"
        )
        if result.exit_code:
            raise OSError("cannot create a repository in the cache")

    def measure_size(self) -> int:
        """Return the size of all objects in bytes."""
        return measure_folder(os.path.join(self.folder, "objects"))

    def fetch_commit(self, ref: str) -> str:
        """Fetch the commit and trees of a ref, and return the commit's id.

        Raises: GitCommandError, CorruptRepository.
        """
        local_ref = f"{_REF_PREFIX}/{ref_file_name(ref)}"
        arguments = (*_FETCH, "--depth=1", "--filter=blob:none", "--", "origin")
        self._run_remote((*arguments, f"+{ref or 'HEAD'}:{local_ref}"))
        objects = self.query_objects([f"{local_ref}^{{commit}}", local_ref])
        commit, target = (line.split(" ") for line in objects)
        if commit[-1] == "missing":
            if target[-1] == "missing":
                raise CorruptRepository
            raise GitCommandError(_NOT_A_COMMIT_MESSAGE)  # a tag may refer to a file or a folder
        return commit[0]

    def fetch_blobs(self, ids: Collection[str], ref: str) -> None:
        """Fetch the contents of files with these ids.

        If the host cannot send single files, the complete commit of `ref` is fetched.
        Raises: GitCommandError.
        """
        arguments = (*_FETCH, "--filter=blob:none", "--stdin", "origin")
        stdin = "".join(f"{object_id}\n" for object_id in sorted(ids)).encode("ascii")
        try:
            # No negotiation: the commits we have say nothing about which files are missing.
            self._run_remote(arguments, ["fetch.negotiationAlgorithm=noop"], stdin)
        except GitCommandError as failure:
            kinds = (GitFailureKind.COMMIT_FETCH_UNSUPPORTED, GitFailureKind.REF_NOT_FOUND)
            if failure.kind not in kinds:
                raise
            # These hosts cannot send single files, so the complete commit is fetched.
            refspec = f"+{ref or 'HEAD'}:{_REF_PREFIX}/{ref_file_name(ref)}"
            everything = (*_FETCH, "--refetch", "--depth=1", "--", "origin", refspec)
            self._run_remote(everything, is_partial=False)

    def find_remote_ref(self, ref: str) -> RemoteRef | None:
        """Return a ref of the remote as git resolves it; `None` if it does not exist.

        Raises: GitCommandError.
        """
        names = _full_ref_names(ref)
        listing = self._run_remote(("ls-remote", "--", "origin", *names), is_partial=False)
        lines = (line.split("\t") for line in listing.decode("ascii", "replace").splitlines())
        commits = {line[1]: line[0] for line in lines if len(line) == 2}  # noqa: PLR2004
        found = (RemoteRef(name, commits[name]) for name in names if name in commits)
        return next(found, None)

    def _run_remote(
        self,
        arguments: Sequence[str],
        configuration: Sequence[str] = (),
        stdin: bytes | None = None,
        *,
        is_partial: bool = True,
    ) -> bytes:
        """Run git with the remote, and return its output.

        If the repository has moved, git runs again with the new URL; if its host asks for
        credentials, with the user's stored login.
        Raises: GitCommandError, and as `read_git`.
        """
        access = self.repository.access
        limits = GitRunLimits(
            self.repository.deadline,
            measured_folder=os.path.join(self.folder, "objects"),
            max_folder_size=self.measure_size() + access.limits.max_bytes,
        )

        def run(remote: Remote) -> bytes:
            settings = [*remote.build_configuration(partial=is_partial), *configuration]
            environment = remote.build_environment()
            options = GitRunOptions(settings, environment, stdin, access.progress, self.lock)
            result = self._run(arguments, limits, options)
            if result.exit_code:
                raise GitCommandError(result.stderr)
            return result.stdout

        try:
            return run(self.repository.open())
        except GitCommandError as failure:
            if failure.kind is GitFailureKind.MOVED:
                remote = self.repository.follow_redirect()
            elif failure.kind is GitFailureKind.AUTHENTICATION:
                signed_in = self.repository.sign_in()
                if signed_in is None:
                    raise
                remote = signed_in
            else:
                raise
        return run(remote)

    @property
    def _lock(self) -> int | None:
        return self.lock

    @property
    def _host(self) -> str:
        return self.repository.endpoint.authority

    def _build_size_error(self) -> SkillhallError:
        return TooLarge(self.repository.source_text, self.repository.access.limits.max_bytes)


def _full_ref_names(ref: str) -> list[str]:
    """Return the names that git tries for a ref; `^{}` resolves a tag to its commit."""
    if not ref:
        return ["HEAD"]
    names = [f"refs/{ref}", f"refs/tags/{ref}", f"refs/heads/{ref}"]
    names = [ref, *names] if ref == "HEAD" or ref.startswith("refs/") else names
    return [f"{name}{suffix}" for name in names for suffix in ("^{}", "")]
