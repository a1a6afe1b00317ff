"""Skills in any git repository, read with git from a cached partial clone.

The clone is bare: no file is ever written to a work tree, so links, filters, hooks and submodules
have no effect. The first request fetches the commit and its trees, without files; the second
fetches the files of the requested skills, which are read from git's object store.

Refs are resolved as in git: a tag takes precedence over a branch of the same name, and `""` means
HEAD. Full commit ids are immutable, so a commit that has been read before needs no network.
Abbreviated ids are not supported.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from skillhall._internal.sources.commit_tree import (
    CommitFiles,
    collect_level,
    iterate_files,
    select_skills,
)
from skillhall._internal.sources.git.clone_cache import is_cached, lock_clone
from skillhall._internal.sources.git.failures import GitCommandError, GitFailureKind
from skillhall._internal.sources.git.object_reader import CorruptRepository
from skillhall._internal.sources.git.object_store import ObjectStore
from skillhall._internal.sources.git.remote import (
    GitAccess,
    RemoteRepository,
    cache_key,
    parse_endpoint,
)
from skillhall._internal.sources.logins.stored_logins import open_stored_logins
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
    from skillhall._internal.policy.folder_walk_rules import ScanPolicy
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.commit_tree import FileSelector
    from skillhall._internal.sources.git.clone_cache import CachedClone
    from skillhall._internal.sources.git.git_ref import GitRef
    from skillhall._internal.sources.repo_layout import FileTree, RepositorySkills

_NO_REPOSITORY = "/nonexistent"  # for commands that need no local repository
_SHA256_LENGTH = 64  # hexadecimal digits of a SHA-256 id


def read_git(reference: GitRef, access: GitAccess, *, source_text: str) -> RepositorySkills:
    """Read the skills of a reference at the current commit of its ref.

    If the host is unavailable, the cached version is used and marked as stale. `source_text` names
    the source in errors. Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited,
    TooLarge, NoSkillThere, SkillNotFound; OSError if the cache cannot be written.
    """
    select = partial(select_skills, source_text=source_text)
    return _read_selected(reference, access, source_text, select).to_skills()


def read_git_level(
    reference: GitRef, access: GitAccess, policy: ScanPolicy, *, source_text: str
) -> FileTree:
    """Read the files that `collect_level` selects below the reference's path.

    Raises: as `read_git`, except NoSkillThere and SkillNotFound.
    """
    select = partial(collect_level, policy=policy, source_text=source_text)
    return _read_selected(reference, access, source_text, select).to_level()


def open_git(reference: GitRef, context: SourceContext, source_text: str) -> RepositorySkills:
    """Read the skills of a reference with the access that the settings allow.

    Raises: as `read_git`.
    """
    return read_git(reference, _build_access(context), source_text=source_text)


def _build_access(context: SourceContext) -> GitAccess:
    settings = context.settings
    access = GitAccess(
        settings.cache_directory,
        context.address_policy,
        settings.tokens,
        ssh_agent_socket=settings.variables.get("SSH_AUTH_SOCK", ""),
        progress=context.progress,
        github_host=urlsplit(settings.github_url).netloc.lower(),
        logins=open_stored_logins(context),
    )
    return access if context.with_credentials else access.without_credentials()


def _read_selected(
    reference: GitRef, access: GitAccess, source_text: str, select: FileSelector
) -> CommitFiles:
    repository = _open_repository(reference, access, source_text)
    key, directory = cache_key(repository.endpoint, access), access.cache_directory
    if not (reference.is_pinned and is_cached(directory, key)):
        repository.check_host()
    requested_at = time.time()
    try:
        with lock_clone(directory, key, repository.deadline) as cache:
            return _CachedRepositoryReader(
                reference, repository, cache, requested_at, select
            ).read()
    except TimeoutError:
        problem = "timed out waiting for another process that uses the cached clone"
        raise SourceTimedOut(repository.endpoint.authority, problem) from None


def resolve_commit(reference: GitRef, access: GitAccess) -> str:
    """Return the current commit of the reference's ref, without using the cache.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited.
    """
    repository = _open_repository(reference, access, reference.text)
    if reference.is_pinned:
        return reference.ref
    store = ObjectStore(_NO_REPOSITORY, repository)
    try:
        refs = (store.find_remote_ref(ref.ref) for ref in reference.interpretations())
        found = next((ref for ref in refs if ref is not None), None)
    except GitCommandError as failure:
        raise repository.to_source_error(failure) from None
    if found is None:
        raise SourceNotFound(reference.text)
    return found.commit


def is_git_tag(reference: GitRef, context: SourceContext) -> bool:
    """Whether the reference's ref is a tag now. Raises: as `resolve_commit`."""
    if not reference.ref or reference.is_pinned:
        return False
    repository = _open_repository(reference, _build_access(context), reference.text)
    try:
        found = ObjectStore(_NO_REPOSITORY, repository).find_remote_ref(reference.ref)
    except GitCommandError as failure:
        raise repository.to_source_error(failure) from None
    return found is not None and found.is_tag


def _open_repository(reference: GitRef, access: GitAccess, source_text: str) -> RemoteRepository:
    """Return the repository, without connecting to it. Raises: SourceRejected."""
    if reference.ref and not is_valid_ref(reference.ref):
        raise SourceRejected("ref", reference.text, "its ref is not valid")
    return RemoteRepository(parse_endpoint(reference.url), access, source_text)


@dataclass(frozen=True, slots=True)
class _CachedRepositoryReader:
    """Reads a repository through its locked cached clone."""

    reference: GitRef
    repository: RemoteRepository
    cache: CachedClone
    requested_at: float  # Unix time
    select: FileSelector

    def read(self) -> CommitFiles:
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

    def _read_current(self) -> CommitFiles:
        """Fetch and read the current commit."""
        for ref in self.reference.interpretations():
            try:
                return self._read_ref(ref)
            except GitCommandError as failure:
                if failure.kind is not GitFailureKind.REF_NOT_FOUND:
                    raise self.repository.to_source_error(failure) from None
                self.cache.forget_ref(ref.ref)
        raise SourceNotFound(self.repository.source_text)

    def _read_ref(self, ref: GitRef) -> CommitFiles:
        commit = self._fetch_commit(ref.ref)
        try:
            result = self._read_commit(ref, commit)
        except CorruptRepository:  # the cached clone is damaged
            commit = self._fetch_into_new_clone(ref.ref)
            try:
                result = self._read_commit(ref, commit)
            except CorruptRepository:
                problem = "the fetched repository is incomplete"
                raise SourceUnavailable(self.repository.endpoint.authority, problem) from None
        except (NoSkillThere, SkillNotFound, SourceNotFound, SourceRejected):
            # The host and the ref are fine: the commit just does not have the requested skills.
            self.cache.record_ref(ref.ref, commit)
            raise
        for name in {ref.ref, result.commit}:  # lock files refer to the commit
            self.cache.record_ref(name, result.commit)
        return result

    def _fetch_commit(self, ref: str) -> str:
        """Fetch a ref and return its commit."""
        if not self.cache.exists:
            return self._fetch_into_new_clone(ref)
        cached = self.cache.read_ref(ref)
        if cached is not None and self.requested_at <= cached.checked_at <= time.time():
            return cached.commit  # another process fetched it while we waited for the lock
        store = self._open_store()
        # Old versions accumulate in a clone; a new one has only the current version.
        if store.measure_size() > self.repository.access.limits.max_bytes:
            return self._fetch_into_new_clone(ref)
        try:
            return store.fetch_commit(ref)
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
            store = ObjectStore(folder, self.repository, self.cache.lock)
            store.create(use_sha256=is_commit_id(ref) and len(ref) == _SHA256_LENGTH)
            try:
                return store.fetch_commit(ref)
            except GitCommandError as failure:
                if failure.kind is not GitFailureKind.HASH_FORMAT_MISMATCH:
                    raise
            store.create(use_sha256=True)
            return store.fetch_commit(ref)

    def _read_stale(self, error: SkillhallError) -> CommitFiles | None:
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
            reason = f"{error}; cached version from {checked_at:%Y-%m-%d %H:%M} UTC"
            return result._replace(stale=reason, checked_at=cached.checked_at)
        return None

    def _read_commit(self, ref: GitRef, commit: str) -> CommitFiles:
        """Read a commit. Raises: CorruptRepository, GitCommandError, and as `read_git`."""
        store = self._open_store()
        skills, findings = self.select(store.list_tree(commit), ref.path)
        ids = {entry.id for entry in iterate_files(skills)}
        if missing := ids - store.read_sizes(ids).keys():
            store.fetch_blobs(missing, ref.ref)
        sizes = store.read_sizes(ids)
        if ids - sizes.keys():
            raise CorruptRepository
        for skill in skills:
            skill.apply_size_limits(sizes)
        limit = self.repository.access.limits.max_bytes
        # Identical files are fetched once but written many times, so the sum can be much larger.
        if sum(sizes[entry.id] for entry in iterate_files(skills)) > limit:
            raise TooLarge(self.repository.source_text, limit)
        contents = store.read_contents({e.id: sizes[e.id] for e in iterate_files(skills)})
        return CommitFiles(skills, findings, contents, commit, ref.ref, time.time())

    def _open_store(self) -> ObjectStore:
        return ObjectStore(self.cache.repository_path, self.repository, self.cache.lock)
