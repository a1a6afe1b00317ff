"""Skills out of any git repository, by the git program and a partial copy that is kept.

The copy is bare: no file of a repository is ever written to a work tree, so links, filters, hooks
and submodules have nothing to act on. First come the commit and its trees, without a single file;
then, in one more request, the files of the skills that are wanted, read out of git's own store.

A ref is looked up as git does it: a tag before a branch of the same name, `""` is the HEAD. Whole
commit ids are pinned, and need no network once they were read; short ones are not commits here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

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
from skillhall._internal.sources.git.process import is_git_available
from skillhall._internal.sources.git.remote import (
    Endpoint,
    GitAccess,
    GitLimits,
    Remote,
    cache_key,
    follow_redirect,
    open_remote,
    parse_endpoint,
)
from skillhall._internal.sources.ref import GitHubRef, GitRef, is_commit_id, is_valid_ref
from skillhall._internal.sources.repo_layout import FileTree, RepositorySkills, find_skills
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

    from skillhall._internal.policy.scan_rules import ScanPolicy
    from skillhall._internal.skill.finding import Finding
    from skillhall._internal.sources.commit_tree import CommitSkill, TreeEntry
    from skillhall._internal.sources.git.clone_cache import CachedClone, CachedRef

    # What of a commit's tree is wanted at a path, and what was noticed on the way.
    _FileSelector = Callable[[list[TreeEntry], str], tuple[list[CommitSkill], list[Finding]]]

T = TypeVar("T")

__all__ = [
    "GitAccess",
    "GitLimits",
    "is_git_available",
    "read_git",
    "read_git_level",
    "resolve_commit",
    "to_git_ref",
]

_NO_REPOSITORY = "/nonexistent"  # for a question that needs no repository of ours
_SHA256_LENGTH = 64  # hexadecimal digits of an id by SHA-256


def read_git(reference: GitRef, access: GitAccess, *, source_text: str) -> RepositorySkills:
    """The skills at a place in a repository, of the commit that its ref has now.

    When the host cannot be asked, they are those of the last time, and marked. `text` names the
    source. Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, TooLarge,
    NoSkillThere, SkillNotFound; OSError if the cache cannot be written.
    """

    def choose(entries: list[TreeEntry], path: str) -> tuple[list[CommitSkill], list[Finding]]:
        return collect_skills(
            entries, find_skills(searchable_paths(entries), path, source_text)
        ), []

    found = _read_selected(
        reference, _RepositoryClient(_check_reference(reference), access, source_text), choose
    )
    bundles = tuple(draft.build_bundle(found.contents) for draft in found.skills)
    return RepositorySkills(bundles, found.commit, found.ref, found.stale)


def read_git_level(
    reference: GitRef, access: GitAccess, policy: ScanPolicy, *, source_text: str
) -> FileTree:
    """What a scan of the one level below the reference's path looks at, of the ref's commit.

    Raises: as `read_git`, but for skills that are missing.
    """

    def choose(entries: list[TreeEntry], path: str) -> tuple[list[CommitSkill], list[Finding]]:
        return collect_level(entries, path, policy, source_text)

    found = _read_selected(
        reference, _RepositoryClient(_check_reference(reference), access, source_text), choose
    )
    files, findings = build_level(found.skills, found.contents)
    return FileTree(
        files, found.commit, (*found.findings, *findings), found.stale, found.checked_at
    )


def to_git_ref(reference: GitHubRef | GitRef, github_url: str) -> GitRef:
    """The reference for git; `github_url` is where repositories of GitHub are."""
    if isinstance(reference, GitRef):
        return reference
    place = f"{github_url}/{reference.owner}/{reference.repository}.git"
    return GitRef(place, reference.path, reference.ref)


class _CommitFiles(NamedTuple):
    """What was wanted of a commit, with the files' bytes by id."""

    skills: list[CommitSkill]
    findings: list[Finding]
    contents: Mapping[str, bytes]
    commit: str
    ref: str  # the one of the readings that it was
    checked_at: float  # when the ref had this commit, in seconds since 1970
    stale: str = ""


def _read_selected(
    reference: GitRef, client: _RepositoryClient, select: _FileSelector
) -> _CommitFiles:
    access = client.access
    key, base = cache_key(client.endpoint, access), access.cache_directory
    if not (is_commit_id(reference.ref) and is_cached(base, key)):
        client.check_host()
    asked = time.time()
    try:
        with lock_clone(base, key, client.deadline) as cache:
            return _CachedRepositoryReader(reference, client, cache, asked, select).read()
    except TimeoutError:
        raise SourceTimedOut(
            client.endpoint.authority, "others are reading it for too long"
        ) from None


def resolve_commit(reference: GitRef, access: GitAccess) -> str:
    """The commit that the ref has now; nothing is kept.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited.
    """
    line = _RepositoryClient(_check_reference(reference), access, reference.text)
    if is_commit_id(reference.ref):
        return reference.ref
    store = line.open_store(_NO_REPOSITORY)
    try:
        for reading in reference.interpretations():
            found = line.call_remote(partial(store.resolve_remote_ref, ref=reading.ref))
            if found is not None:
                return found
    except GitCommandError as failure:
        raise line.to_source_error(failure) from None
    raise SourceNotFound(reference.text)


def _check_reference(reference: GitRef) -> Endpoint:
    """The repository's URL, if it and the ref are what they seem. Raises: SourceRejected."""
    if reference.ref and not is_valid_ref(reference.ref):
        raise SourceRejected("ref", reference.text, "git has no such names for refs")
    return parse_endpoint(reference.url)


class _RepositoryClient:
    """The way to one repository, and the time that is left; looked up when it is first needed."""

    def __init__(self, endpoint: Endpoint, access: GitAccess, source_text: str) -> None:
        self.endpoint = endpoint
        self.access = access
        self.source_text = source_text
        self.deadline = time.monotonic() + access.limits.total_seconds
        self._remote: Remote | None = None
        self._lookup_error: SourceUnavailable | None = None

    def check_host(self) -> None:
        """Refuse hosts that we do not call, before anything is made. Raises: SourceRejected."""
        try:
            self._remote = open_remote(self.endpoint, self.access, self.deadline)
        except SourceUnavailable as error:
            self._lookup_error = error  # an older copy may do

    def open_store(self, folder: str, lock: int | None = None) -> ObjectStore:
        """A repository on our disk that is filled over this line, and the lock on it."""
        size, progress = self.access.limits.max_bytes, self.access.progress
        return ObjectStore(
            folder, self.endpoint.authority, self.source_text, self.deadline, size, progress, lock
        )

    def call_remote(self, operation: Callable[[Remote], T]) -> T:
        """What the repository answers, at its new place if it has moved.

        Raises: GitFailed, and as `read_git` does.
        """
        remote = self._open_remote()
        try:
            return operation(remote)
        except GitCommandError as failure:
            if failure.kind is not GitFailureKind.MOVED:
                raise
        self._remote = self._follow_move(remote)
        return operation(self._remote)

    def to_source_error(self, failure: GitCommandError) -> SkillhallError:
        """The error for a question that failed."""
        return to_source_error(failure, self._open_remote(), self.source_text)

    def _open_remote(self) -> Remote:
        if self._lookup_error is not None:
            raise self._lookup_error
        if self._remote is None:
            self._remote = open_remote(self.endpoint, self.access, self.deadline)
        return self._remote

    def _follow_move(self, remote: Remote) -> Remote:
        try:
            return follow_redirect(remote, self.access, self.deadline)
        except (SourceNotFound, TooLarge):  # without a token, private ones are not seen
            raise to_source_error(
                GitCommandError("returned error: 301"), remote, self.source_text
            ) from None


@dataclass(frozen=True, slots=True)
class _CachedRepositoryReader:
    """One reading of a repository, with its copy locked."""

    reference: GitRef
    client: _RepositoryClient
    cache: CachedClone
    requested_at: float  # seconds since 1970
    select: _FileSelector

    def read(self) -> _CommitFiles:
        """The skills. Raises: as `read_git` does."""
        pinned = self._read_pinned()
        if pinned is not None:
            return pinned
        try:
            return self._read_current()
        except (SourceUnavailable, RateLimited) as error:
            older = self._read_stale(error)
            if older is None:
                raise
            return older

    def _read_pinned(self) -> _CommitFiles | None:
        """The skills of a commit that never changes, if it is here."""
        ref = self.reference.ref
        if not is_commit_id(ref) or self.cache.read_ref(ref) is None:
            return None
        try:
            return self._read_commit(self.reference, ref)
        except (CorruptRepository, GitCommandError):
            return None

    def _read_current(self) -> _CommitFiles:
        """The skills of today."""
        for reading in self.reference.interpretations():
            try:
                return self._read_ref(reading)
            except GitCommandError as failure:
                if failure.kind is not GitFailureKind.REF_NOT_FOUND:
                    raise self.client.to_source_error(failure) from None
                self.cache.forget_ref(reading.ref)
        raise SourceNotFound(self.client.source_text)

    def _read_ref(self, ref: GitRef) -> _CommitFiles:
        commit = self._fetch_commit(ref.ref)
        try:
            found = self._read_commit(ref, commit)
        except CorruptRepository:
            found = self._read_from_new_clone(ref)
        except (NoSkillThere, SkillNotFound, SourceNotFound, SourceRejected):
            self.cache.record_ref(ref.ref, commit)
            raise
        for known in {ref.ref, found.commit}:  # a lock asks for the commit itself
            self.cache.record_ref(known, found.commit)
        return found

    def _read_from_new_clone(self, ref: GitRef) -> _CommitFiles:
        """The skills out of a new copy; the old one is damaged."""
        try:
            return self._read_commit(ref, self._fetch_into_new_clone(ref.ref))
        except CorruptRepository:
            host = self.client.endpoint.authority
            raise SourceUnavailable(host, "what it sends is not whole") from None

    def _fetch_commit(self, ref: str) -> str:
        """The commit of a ref, fetched."""
        seen = self.cache.read_ref(ref)
        if (
            seen is not None
            and self.requested_at <= seen.checked_at <= time.time()
            and self.cache.exists
        ):
            return seen.commit  # somebody else asked while we waited for them
        store = self.client.open_store(self.cache.repository_path, self.cache.lock)
        if not self.cache.exists or store.measure_size() > self.client.access.limits.max_bytes:
            return self._fetch_into_new_clone(ref)
        try:
            return self.client.call_remote(
                partial(store.fetch_commit, ref=ref, ref_name=ref_file_name(ref))
            )
        except CorruptRepository:
            return self._fetch_into_new_clone(ref)
        except GitCommandError as failure:
            if failure.kind not in (GitFailureKind.UNKNOWN, GitFailureKind.HASH_FORMAT_MISMATCH):
                raise
        return self._fetch_into_new_clone(
            ref
        )  # whether our copy or the host is at fault shows there

    def _fetch_into_new_clone(self, ref: str) -> str:
        """The commit of a ref, fetched into a copy that is new."""
        with self.cache.replace_clone() as folder:
            store = self.client.open_store(folder, self.cache.lock)
            question = partial(store.fetch_commit, ref=ref, ref_name=ref_file_name(ref))
            store.create(use_sha256=is_commit_id(ref) and len(ref) == _SHA256_LENGTH)
            try:
                return self.client.call_remote(question)
            except GitCommandError as failure:
                if failure.kind is not GitFailureKind.HASH_FORMAT_MISMATCH:
                    raise
            store.create(use_sha256=True)
            return self.client.call_remote(question)

    def _read_stale(self, error: SkillhallError) -> _CommitFiles | None:
        """The skills of the last time, if they are still here."""
        for reading in self.reference.interpretations():
            seen = self.cache.read_ref(reading.ref)
            if seen is None:
                continue
            try:
                found = self._read_commit(reading, seen.commit)
            except (CorruptRepository, GitCommandError, SourceUnavailable, RateLimited):
                return None
            return found._replace(
                stale=_format_stale_reason(error, seen), checked_at=seen.checked_at
            )
        return None

    def _read_commit(self, ref: GitRef, commit: str) -> _CommitFiles:
        """The skills of a commit. Raises: Damaged, GitFailed, and as `read_git` does."""
        store = self.client.open_store(self.cache.repository_path, self.cache.lock)
        entries = store.list_tree(commit)
        drafts, findings = self.select(entries, ref.path)
        sizes = self._fetch_sizes(store, ref.ref, {entry.id for entry in iterate_files(drafts)})
        for draft in drafts:
            draft.apply_size_limits(sizes)
        limit = self.client.access.limits.max_bytes
        # A file that is there often comes once, and is written as often as it is there.
        if sum(sizes[entry.id] for entry in iterate_files(drafts)) > limit:
            raise TooLarge(self.client.source_text, limit)
        contents = store.read_contents(
            {entry.id: sizes[entry.id] for entry in iterate_files(drafts)}
        )
        return _CommitFiles(drafts, findings, contents, commit, ref.ref, time.time())

    def _fetch_sizes(self, store: ObjectStore, ref: str, ids: set[str]) -> dict[str, int]:
        """The sizes of files, which are fetched if they are not here."""
        missing = ids - store.read_sizes(ids).keys()
        if missing:
            try:
                self.client.call_remote(partial(store.fetch_blobs, ids=missing))
            except GitCommandError as failure:
                if failure.kind not in (
                    GitFailureKind.COMMIT_FETCH_UNSUPPORTED,
                    GitFailureKind.REF_NOT_FOUND,
                ):
                    raise
                self.client.call_remote(
                    partial(store.fetch_all_files, ref=ref, ref_name=ref_file_name(ref))
                )
        sizes = store.read_sizes(ids)
        if ids - sizes.keys():
            raise CorruptRepository
        return sizes


def _format_stale_reason(error: SkillhallError, cached_ref: CachedRef) -> str:
    when = datetime.fromtimestamp(cached_ref.checked_at, UTC)
    return f"{error}; this copy is of {when:%Y-%m-%d %H:%M} UTC"
