"""Skills of any git repository, read with the git program from a cached partial clone.

The clone is bare: no file is ever written to a work tree, so links, filters, hooks and submodules
have no effect. The first request fetches the commit and its trees, without files; the second one
fetches the files of the requested skills, which are read from git's object store.

A ref is resolved as git does it: a tag before a branch of the same name, `""` is HEAD. Full commit
ids are immutable and need no network once they were read. Abbreviated ids are not supported.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit

from skillhall._internal.sources.commit_tree import (
    build_level,
    collect_level,
    collect_skills,
    iterate_files,
    searchable_paths,
)
from skillhall._internal.sources.git.clone_cache import is_cached, lock_clone, ref_file_name
from skillhall._internal.sources.git.failures import (
    GitCommandError,
    GitFailureKind,
    to_source_error,
)
from skillhall._internal.sources.git.object_store import CorruptRepository, ObjectStore
from skillhall._internal.sources.git.remote import (
    Endpoint,
    GitAccess,
    Remote,
    cache_key,
    follow_redirect,
    open_remote,
    parse_endpoint,
)
from skillhall._internal.sources.repo_layout import FileTree, RepositorySkills, find_skills
from skillhall._internal.sources.source_text import is_commit_id, is_valid_ref
from skillhall.errors import (
    NoSkillThere,
    RateLimited,
    SkillhallError,
    SkillNotFound,
    SourceNotFound,
    SourceRejected,
    SourceTimedOut,
    SourceUnavailable,
    TooLarge,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillhall._internal.policy.folder_walk_rules import ScanPolicy
    from skillhall._internal.skill.finding import Finding
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.commit_tree import CommitSkill, TreeEntry
    from skillhall._internal.sources.git.clone_cache import CachedClone
    from skillhall._internal.sources.git.git_ref import GitRef

    # From a commit's tree and a path to the requested skills, with findings.
    _FileSelector = Callable[[list[TreeEntry], str], tuple[list[CommitSkill], list[Finding]]]

T = TypeVar("T")

_NO_REPOSITORY = "/nonexistent"  # for commands that need no local repository
_SHA256_LENGTH = 64  # hexadecimal digits of a SHA-256 id


def read_git(reference: GitRef, access: GitAccess, *, source_text: str) -> RepositorySkills:
    """Read skills of a repository at the current commit of the reference's ref.

    If the host is unavailable, the cached version is used and marked as stale. `source_text` names
    the source in errors. Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited,
    TooLarge, NoSkillThere, SkillNotFound; OSError if the cache cannot be written.
    """

    def select(entries: list[TreeEntry], path: str) -> tuple[list[CommitSkill], list[Finding]]:
        folders = find_skills(searchable_paths(entries), path, source_text)
        return collect_skills(entries, folders), []

    result = _read_selected(reference, access, source_text, select)
    bundles = tuple(skill.build_bundle(result.contents) for skill in result.skills)
    return RepositorySkills(bundles, result.commit, result.ref, result.stale)


def read_git_level(
    reference: GitRef, access: GitAccess, policy: ScanPolicy, *, source_text: str
) -> FileTree:
    """Read the files of `collect_level` one level below the reference's path.

    Raises: as `read_git`, except for missing skills.
    """

    def select(entries: list[TreeEntry], path: str) -> tuple[list[CommitSkill], list[Finding]]:
        return collect_level(entries, path, policy, source_text)

    result = _read_selected(reference, access, source_text, select)
    files, findings = build_level(result.skills, result.contents)
    findings = [*result.findings, *findings]
    return FileTree(files, result.commit, tuple(findings), result.stale, result.checked_at)


def open_git(reference: GitRef, context: SourceContext, source_text: str) -> RepositorySkills:
    """Read skills of a repository as the settings allow. Raises: as `read_git`."""
    settings = context.settings
    access = GitAccess(
        settings.cache_directory,
        context.address_policy,
        settings.tokens,
        ssh_agent_socket=settings.variables.get("SSH_AUTH_SOCK", ""),
        progress=context.progress,
        github_host=urlsplit(settings.github_url).netloc.lower(),
    )
    access = access if context.with_credentials else access.without_credentials()
    return read_git(reference, access, source_text=source_text)


class _CommitFiles(NamedTuple):
    """Selected skills of a commit, with the files' bytes by object id."""

    skills: list[CommitSkill]
    findings: list[Finding]
    contents: Mapping[str, bytes]
    commit: str
    ref: str  # of the interpretation that exists
    checked_at: float  # Unix time when the ref had this commit
    stale: str = ""


def _read_selected(
    reference: GitRef, access: GitAccess, source_text: str, select: _FileSelector
) -> _CommitFiles:
    client = _RepositoryClient(_check_reference(reference), access, source_text)
    key, directory = cache_key(client.endpoint, access), access.cache_directory
    if not (reference.is_pinned and is_cached(directory, key)):
        client.check_host()
    requested_at = time.time()
    try:
        with lock_clone(directory, key, client.deadline) as cache:
            return _CachedRepositoryReader(reference, client, cache, requested_at, select).read()
    except TimeoutError:
        problem = "another process is reading it for too long"
        raise SourceTimedOut(client.endpoint.authority, problem) from None


def resolve_commit(reference: GitRef, access: GitAccess) -> str:
    """Return the current commit of the reference's ref, without caching.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited.
    """
    client = _RepositoryClient(_check_reference(reference), access, reference.text)
    if reference.is_pinned:
        return reference.ref
    store = client.open_store(_NO_REPOSITORY)
    try:
        for ref in reference.interpretations():
            commit = client.call_remote(partial(store.resolve_remote_ref, ref=ref.ref))
            if commit is not None:
                return commit
    except GitCommandError as failure:
        raise client.to_source_error(failure) from None
    raise SourceNotFound(reference.text)


def _check_reference(reference: GitRef) -> Endpoint:
    """Check the ref and return the parsed URL. Raises: SourceRejected."""
    if reference.ref and not is_valid_ref(reference.ref):
        raise SourceRejected("ref", reference.text, "its ref is not valid")
    return parse_endpoint(reference.url)


class _RepositoryClient:
    """Client of one repository with a deadline; resolves the host on first use."""

    def __init__(self, endpoint: Endpoint, access: GitAccess, source_text: str) -> None:
        self.endpoint = endpoint
        self.access = access
        self.source_text = source_text
        self.deadline = time.monotonic() + access.limits.total_seconds
        self._remote: Remote | None = None
        self._lookup_error: SourceUnavailable | None = None

    def check_host(self) -> None:
        """Reject disallowed hosts before a cache folder is created. Raises: SourceRejected."""
        try:
            self._remote = open_remote(self.endpoint, self.access, self.deadline)
        except SourceUnavailable as error:
            self._lookup_error = error  # raised later, if there is no cached version

    def open_store(self, folder: str, lock: int | None = None) -> ObjectStore:
        """Return the local object store in `folder`; git inherits the lock on it."""
        size, progress = self.access.limits.max_bytes, self.access.progress
        return ObjectStore(
            folder, self.endpoint.authority, self.source_text, self.deadline, size, progress, lock
        )

    def call_remote(self, operation: Callable[[Remote], T]) -> T:
        """Call `operation` with the remote; if the repository has moved, at its new URL.

        Raises: GitCommandError, and as `read_git`.
        """
        remote = self._open_remote()
        try:
            return operation(remote)
        except GitCommandError as failure:
            if failure.kind is not GitFailureKind.MOVED:
                raise
        try:
            self._remote = follow_redirect(remote, self.access, self.deadline)
        except (SourceNotFound, TooLarge):  # the token is not sent, so private ones are not found
            moved = GitCommandError("returned error: 301")
            raise to_source_error(moved, remote, self.source_text) from None
        return operation(self._remote)

    def to_source_error(self, failure: GitCommandError) -> SkillhallError:
        """Return the source error for a failed git command."""
        return to_source_error(failure, self._open_remote(), self.source_text)

    def _open_remote(self) -> Remote:
        if self._lookup_error is not None:
            raise self._lookup_error
        if self._remote is None:
            self._remote = open_remote(self.endpoint, self.access, self.deadline)
        return self._remote


@dataclass(frozen=True, slots=True)
class _CachedRepositoryReader:
    """Reads a repository through its locked cached clone."""

    reference: GitRef
    client: _RepositoryClient
    cache: CachedClone
    requested_at: float  # Unix time
    select: _FileSelector

    def read(self) -> _CommitFiles:
        """Read the selected files. Raises: as `read_git`."""
        if self.reference.is_pinned and self.cache.read_ref(self.reference.ref) is not None:
            with suppress(CorruptRepository, GitCommandError):
                return self._read_commit(self.reference, self.reference.ref)
        try:
            return self._read_current()
        except (SourceUnavailable, RateLimited) as error:
            stale = self._read_stale(error)
            if stale is None:
                raise
            return stale

    def _read_current(self) -> _CommitFiles:
        """Fetch and read the current commit."""
        for ref in self.reference.interpretations():
            try:
                return self._read_ref(ref)
            except GitCommandError as failure:
                if failure.kind is not GitFailureKind.REF_NOT_FOUND:
                    raise self.client.to_source_error(failure) from None
                self.cache.forget_ref(ref.ref)
        raise SourceNotFound(self.client.source_text)

    def _read_ref(self, ref: GitRef) -> _CommitFiles:
        commit = self._fetch_commit(ref.ref)
        try:
            result = self._read_commit(ref, commit)
        except CorruptRepository:  # the cached clone is damaged
            commit = self._fetch_into_new_clone(ref.ref)
            try:
                result = self._read_commit(ref, commit)
            except CorruptRepository:
                problem = "the fetched repository is incomplete"
                raise SourceUnavailable(self.client.endpoint.authority, problem) from None
        except (NoSkillThere, SkillNotFound, SourceNotFound, SourceRejected):
            self.cache.record_ref(ref.ref, commit)
            raise
        for name in {ref.ref, result.commit}:  # lock files refer to the commit
            self.cache.record_ref(name, result.commit)
        return result

    def _fetch_commit(self, ref: str) -> str:
        """Fetch a ref and return its commit."""
        cached = self.cache.read_ref(ref)
        is_fresh = cached is not None and self.requested_at <= cached.checked_at <= time.time()
        if cached is not None and is_fresh and self.cache.exists:
            return cached.commit  # another process fetched it while we waited for the lock
        store = self.client.open_store(self.cache.repository_path, self.cache.lock)
        if not self.cache.exists or store.measure_size() > self.client.access.limits.max_bytes:
            return self._fetch_into_new_clone(ref)
        try:
            operation = partial(store.fetch_commit, ref=ref, ref_name=ref_file_name(ref))
            return self.client.call_remote(operation)
        except CorruptRepository:
            return self._fetch_into_new_clone(ref)
        except GitCommandError as failure:
            if failure.kind not in (GitFailureKind.UNKNOWN, GitFailureKind.HASH_FORMAT_MISMATCH):
                raise
        # The cached clone may be the cause; if not, the new clone fails as well.
        return self._fetch_into_new_clone(ref)

    def _fetch_into_new_clone(self, ref: str) -> str:
        """Fetch a ref into a new clone and return its commit."""
        with self.cache.replace_clone() as folder:
            store = self.client.open_store(folder, self.cache.lock)
            operation = partial(store.fetch_commit, ref=ref, ref_name=ref_file_name(ref))
            store.create(use_sha256=is_commit_id(ref) and len(ref) == _SHA256_LENGTH)
            try:
                return self.client.call_remote(operation)
            except GitCommandError as failure:
                if failure.kind is not GitFailureKind.HASH_FORMAT_MISMATCH:
                    raise
            store.create(use_sha256=True)
            return self.client.call_remote(operation)

    def _read_stale(self, error: SkillhallError) -> _CommitFiles | None:
        """Read the cached version, if there is one."""
        for ref in self.reference.interpretations():
            cached = self.cache.read_ref(ref.ref)
            if cached is None:
                continue
            try:
                result = self._read_commit(ref, cached.commit)
            except (CorruptRepository, GitCommandError, SourceUnavailable, RateLimited):
                return None
            checked_at = datetime.fromtimestamp(cached.checked_at, UTC)
            reason = f"{error}; cached version of {checked_at:%Y-%m-%d %H:%M} UTC"
            return result._replace(stale=reason, checked_at=cached.checked_at)
        return None

    def _read_commit(self, ref: GitRef, commit: str) -> _CommitFiles:
        """Read a commit. Raises: CorruptRepository, GitCommandError, and as `read_git`."""
        store = self.client.open_store(self.cache.repository_path, self.cache.lock)
        entries = store.list_tree(commit)
        skills, findings = self.select(entries, ref.path)
        sizes = self._fetch_sizes(store, ref.ref, {entry.id for entry in iterate_files(skills)})
        for skill in skills:
            skill.apply_size_limits(sizes)
        limit = self.client.access.limits.max_bytes
        # Identical files are fetched once but written many times, so the sum can be much larger.
        if sum(sizes[entry.id] for entry in iterate_files(skills)) > limit:
            raise TooLarge(self.client.source_text, limit)
        contents = store.read_contents({e.id: sizes[e.id] for e in iterate_files(skills)})
        return _CommitFiles(skills, findings, contents, commit, ref.ref, time.time())

    def _fetch_sizes(self, store: ObjectStore, ref: str, ids: set[str]) -> dict[str, int]:
        """Return the sizes of files; missing files are fetched."""
        missing = ids - store.read_sizes(ids).keys()
        if missing:
            try:
                self.client.call_remote(partial(store.fetch_blobs, ids=missing))
            except GitCommandError as failure:
                # These hosts cannot send single files, so the complete commit is fetched.
                kinds = (GitFailureKind.COMMIT_FETCH_UNSUPPORTED, GitFailureKind.REF_NOT_FOUND)
                if failure.kind not in kinds:
                    raise
                operation = partial(store.fetch_all_files, ref=ref, ref_name=ref_file_name(ref))
                self.client.call_remote(operation)
        sizes = store.read_sizes(ids)
        if ids - sizes.keys():
            raise CorruptRepository
        return sizes
