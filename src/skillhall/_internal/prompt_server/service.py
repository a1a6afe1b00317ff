"""Prompt service: selects the source of a request and serves its prompts."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.background import PollingThread
from skillhall._internal.cache import LruCache
from skillhall._internal.catalog.repository_skills import RepositoryOrigin, RepositorySkillSet
from skillhall._internal.catalog.skip_log import log_skipped
from skillhall._internal.prompt_server.checkout import CheckoutStore
from skillhall._internal.prompt_server.followed_repos import FollowedRepositories
from skillhall._internal.prompt_server.prompt_model import (
    BUILT_IN,
    SourceSelector,
    SourceStatus,
    Stale,
)
from skillhall._internal.prompt_server.prompt_snapshot import RESPONSE_CACHE_BYTES, PromptSnapshot
from skillhall._internal.prompt_server.refreshing_source import (
    Clock,
    RefreshingSource,
    describe_error,
    to_source_error,
)
from skillhall._internal.prompt_server.repo_source import (
    GitHosts,
    LocalFolder,
    Repository,
    RepositoryReader,
    parse_requested_repository,
    to_canonical_url,
)
from skillhall._internal.prompt_server.uploads.folder_uploads import MAX_SOURCES, FolderUploads
from skillhall._internal.prompt_server.uploads.rules import normalize_source_name
from skillhall._internal.sources.git.clone_cache import delete_clone
from skillhall._internal.sources.token_scope import TokenScope, reject_token_use
from skillhall.errors import PromptsSourceError, SkillhallError, SourceRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillhall._internal.catalog.trust.server_gate import PromptGate
    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.prompt_server.prompt_model import (
        FollowedRepository,
        IngestResult,
        SourceRole,
        Upload,
    )
    from skillhall._internal.prompt_server.refreshing_source import Fetch
    from skillhall._internal.prompt_server.uploads.database_uploads import DatabaseUploads
    from skillhall._internal.sources.git.remote import GitAccess
    from skillhall._internal.sources.github.client import GitHubAccess
    from skillhall._internal.storage.audit.file_audit import FileAudit

    ReadSource: TypeAlias = Callable[[RefreshingSource, Fetch], PromptSnapshot]
    PublishChange: TypeAlias = Callable[[Sequence[str], str], None]  # takes URLs and a branch

_CONFIGURED_SOURCE = SourceSelector()
MAX_OVERRIDES = 32  # cached repositories that requests named
_OVERRIDE_CACHE_BYTES = 8 * 1024 * 1024  # for the responses of each override
MAX_WAIT = 10.0  # seconds that a request waits for the configured source
_MIN_POLL_INTERVAL = 1.0  # seconds
_THREAD = "skillhall-prompts"


@dataclass(frozen=True, slots=True)
class PromptSources:
    """Sources of prompts, and how to reach them."""

    git_access: GitAccess  # with the operator's tokens
    data_directory: str
    git_hosts: GitHosts
    configured: Repository | LocalFolder | None = None
    ttl: float = 86400.0  # seconds
    max_overrides: int = MAX_OVERRIDES
    clock: Clock = field(default_factory=Clock)
    token_scope: TokenScope = field(default_factory=TokenScope)
    github_access: GitHubAccess | None = None  # replaces git where that is not available
    uploads: FolderUploads | DatabaseUploads | None = (
        None  # defaults to folders in the data directory
    )
    publish_change: PublishChange = lambda *_: None  # notifies other servers
    can_follow: bool = True  # whether users may add repositories
    open_file_audit: Callable[[str], FileAudit] | None = None  # takes a name for some files
    gate: PromptGate | None = None  # holds skills that a policy denies
    max_wait: float = MAX_WAIT

    def audit_file(self, name: str) -> FileAudit | None:
        """Return the recorder of changes to a file; None if there is no audit log."""
        return None if self.open_file_audit is None else self.open_file_audit(name)

    def git_access_for(self, repository: Repository) -> GitAccess:
        """Return how to access a repository.

        Only the configured repository and those in `token_scope` get the operator's tokens.
        """
        url, configured = repository.reference.url, self.configured
        is_configured = isinstance(configured, Repository) and url == configured.reference.url
        if is_configured or self.token_scope.includes(url):
            return self.git_access
        return self.git_access.without_credentials()

    def build_reader(self, access: GitAccess) -> RepositoryReader:
        """Return a reader that uses the tokens of `access`."""
        github = self.github_access
        if github is None:
            return RepositoryReader(access, self.git_hosts.github_url)
        if access is not self.git_access:  # use the request's own token, if any
            token = next(iter(access.tokens.values()), None)
            github = replace(github, tokens={github.authority: token} if token else {})
        return RepositoryReader(github, self.git_hosts.github_url)


class _Override(NamedTuple):
    """Repository that requests have named, with its snapshots."""

    repository: Repository
    source: RefreshingSource
    clone_key: str


class _ParsedOverride(NamedTuple):
    """Repository of a request, how to access it, and its cache key."""

    repository: Repository
    access: GitAccess
    key: tuple[str, ...]


class PromptService:
    """Serves the built-in prompts and those of all sources. Thread-safe."""

    def __init__(self, prompt_sources: PromptSources, *, poll: bool = False) -> None:
        self._prompt_sources = prompt_sources
        self._configured = prompt_sources.configured
        self._checkouts = CheckoutStore(prompt_sources.git_access.cache_directory)
        self._uploads = prompt_sources.uploads or FolderUploads(
            prompt_sources.data_directory, file_audit=prompt_sources.audit_file("uploads")
        )
        if isinstance(self._uploads, FolderUploads):
            with contextlib.suppress(SkillhallError, OSError):  # the next upload tries again
                self._uploads.recover()
        self._built_in = PromptSnapshot(BUILT_IN)
        self._configured_source = RefreshingSource(
            prompt_sources.ttl, prompt_sources.clock, delay_retries=True
        )
        self._overrides = LruCache[tuple[str, ...], _Override](
            prompt_sources.max_overrides, lambda evicted: self._discard_clones([evicted.clone_key])
        )
        # By source name; each snapshot with the version of its upload.
        self._upload_snapshots = LruCache[str, tuple[str, PromptSnapshot]](MAX_SOURCES)
        is_polling = poll and self._configured is not None
        self._poller = (
            PollingThread(self._poll, self._seconds_until_poll, _THREAD) if is_polling else None
        )
        self._followed = FollowedRepositories(
            prompt_sources, self._checkouts, self._discard_clones, poll=poll
        )
        self._filtered = LruCache[str, PromptSnapshot](MAX_SOURCES)
        self._skills_lock = threading.Lock()
        # The snapshots keep the files of their skills alive.
        self._cached_skills: tuple[tuple[PromptSnapshot, ...], RepositorySkillSet] | None = None

    def snapshot(self, selector: SourceSelector = _CONFIGURED_SOURCE) -> PromptSnapshot:
        """Return the current snapshot of a source, reading or refreshing it if due.

        If the configured source cannot be read in time, the result is its last snapshot, or the
        built-in prompts, marked stale. For other repositories, this waits for the fetch.
        Raises: PromptsSourceError, SourceUnknown, SourceRejected.
        """
        return self._without_held(self._read_snapshot(selector, RefreshingSource.snapshot))

    def cached_snapshot(
        self, selector: SourceSelector = _CONFIGURED_SOURCE
    ) -> PromptSnapshot | None:
        """Return a repository's snapshot, unless a request must refresh it. Never blocks.

        Returns None if a refresh is due and not in progress, if a check of policies is due, or if
        the selector names an upload. Raises: SourceRejected.
        """
        snapshot, gate = self._find_cached_snapshot(selector), self._prompt_sources.gate
        if snapshot is None or gate is None or not snapshot.skills:
            return snapshot
        held = gate.find_known_held(_get_revision(snapshot))
        return None if held is None else self._filter(snapshot, held)

    def _without_held(self, snapshot: PromptSnapshot) -> PromptSnapshot:
        gate = self._prompt_sources.gate
        if gate is None or not snapshot.skills:
            return snapshot
        return self._filter(snapshot, gate.find_held(_get_revision(snapshot), snapshot.skills))

    def _filter(self, snapshot: PromptSnapshot, held: frozenset[str]) -> PromptSnapshot:
        """Return the snapshot without held prompts; the same object for the same arguments."""
        if not held:
            return snapshot
        key = f"{_get_revision(snapshot)} {sorted(held)} {snapshot.stale}"
        filtered = self._filtered.get(key)
        if filtered is None:
            filtered = snapshot.without(held)
            self._filtered.put(key, filtered)
        return filtered

    def _find_cached_snapshot(self, selector: SourceSelector) -> PromptSnapshot | None:
        if selector == _CONFIGURED_SOURCE:
            if self._configured is None:
                return self._built_in
            source = self._configured_source
        elif selector.source or not self._is_override(selector):
            return None
        else:
            override = self._overrides.get(self._parse_override(selector).key)
            if override is None:
                return None
            source = override.source
        return source.cached_snapshot if source.seconds_until_due or source.is_refreshing else None

    def refresh(self, selector: SourceSelector = _CONFIGURED_SOURCE) -> PromptSnapshot:
        """Refresh a source and notify other servers.

        The result is stale if the source cannot be read. Raises: as `snapshot`.
        """
        snapshot = self._read_snapshot(selector, RefreshingSource.refresh)
        repository = self._select_repository(selector)
        if repository is not None:
            reference = repository.reference
            self._prompt_sources.publish_change([to_canonical_url(reference.url)], reference.ref)
        return self._without_held(snapshot)

    def ingest(self, upload: Upload, *, actor: Actor) -> IngestResult:
        """Store an upload under its name.

        Raises: UploadRejected, TooLarge, OSError, DatabaseUnavailable, DatabaseFull.
        """
        return self._uploads.ingest(upload, actor)

    def handle_push(self, urls: Sequence[str], branch: str) -> bool:
        """Mark a pushed repository as due for a refresh, and notify other servers.

        Return whether the repository is in use here.
        """
        is_ours = self.expire(urls, branch)
        self._prompt_sources.publish_change(urls, branch)
        return is_ours

    def expire(self, urls: Sequence[str], branch: str) -> bool:
        """Like `handle_push`, for another server's event: does not notify other servers."""
        known = [(override.repository, override.source) for override in self._overrides.values()]
        if isinstance(self._configured, Repository):
            known.append((self._configured, self._configured_source))
        affected = [source for repo, source in known if repo.is_affected_by_push(urls, branch)]
        for source in affected:
            source.expire()
        if self._poller is not None and self._configured_source in affected:
            self._poller.wake()
        return self._followed.expire(urls, branch) or bool(affected)

    def status(self) -> Sequence[SourceStatus]:
        """Return the status of all sources: configured, followed, then the others."""
        sources = [override.source for override in self._overrides.values()]
        read = [(source.cached_snapshot, source.checked_at) for source in sources]
        uploaded = self._upload_snapshots.values()
        return [
            self._configured_status(),
            *self._followed.status(),
            *(_build_status(snapshot, at, "override") for snapshot, at in read if snapshot),
            *(_build_status(snapshot, "", "upload") for _, snapshot in uploaded),
        ]

    def skills(self) -> RepositorySkillSet:
        """Return the skills of the configured source, then of the followed ones."""
        # Held skills stay on the pages, marked.
        configured = self._find_cached_snapshot(_CONFIGURED_SOURCE) or self._read_snapshot(
            _CONFIGURED_SOURCE, RefreshingSource.snapshot
        )
        snapshots = (configured.with_stale(None), *self._followed.snapshots())
        with self._skills_lock:
            if self._cached_skills is None or self._cached_skills[0] != snapshots:
                self._cached_skills = snapshots, _collect_skills(snapshots)
            return self._cached_skills[1]

    def follow(self, selector: SourceSelector, *, actor: Actor) -> SourceStatus:
        """Read a repository and serve its skills from now on.

        Raises: FollowingOff, SourceRejected, PromptsSourceError, NoSkillThere, Conflict,
        FieldRefused, ConfigInvalid, OSError.
        """
        return self._followed.follow(selector, actor)

    def unfollow(self, key: str, *, actor: Actor) -> FollowedRepository:
        """Stop serving the skills of a repository.

        Raises: FollowingOff, RecordNotFound, ConfigInvalid, OSError.
        """
        return self._followed.unfollow(key, actor)

    def refresh_followed(self) -> None:
        """Refresh all followed repositories; `status` has the results.

        Raises: SourceTimedOut if that takes too long; it continues in the background.
        """
        self._followed.refresh()

    @property
    def follow_error(self) -> SkillhallError | None:
        """Reason why no repository can be followed, or None."""
        return self._followed.error

    def close(self) -> None:
        """Stop polling and delete the checkouts of this process."""
        self._followed.close()
        if self._poller is not None:
            self._poller.close()
        self._checkouts.close()

    def _read_snapshot(self, selector: SourceSelector, read: ReadSource) -> PromptSnapshot:
        if selector.source:
            if selector.repo or selector.path or selector.branch:
                problem = "an uploaded source has no repository, path or branch"
                raise SourceRejected(
                    "url", selector.source, problem, "name either an upload or a repository"
                )
            return self._read_upload(normalize_source_name(selector.source))
        if self._is_override(selector):
            return self._read_override(selector, read)
        if self._configured is None:
            return self._built_in
        if read is RefreshingSource.snapshot:
            read = partial(read, max_wait=self._prompt_sources.max_wait)
        try:
            return read(self._configured_source, self._fetch_configured)
        except (SkillhallError, OSError) as error:
            return self._built_in.with_stale(self._to_stale(describe_error(error)))

    def _is_override(self, selector: SourceSelector) -> bool:
        has_own_token = selector.token and isinstance(self._configured, Repository)
        return bool(selector.repo or selector.path or selector.branch or has_own_token)

    def _parse_override(self, selector: SourceSelector) -> _ParsedOverride:
        """Return the repository of a request and how to access it.

        Raises: SourceRejected, ScopeRequired.
        """
        repository = self._select_repository(selector)
        if repository is None:
            text, hint = selector.path or selector.branch, "name the repository too"
            raise SourceRejected("path", text, "no repository is configured", hint)
        access = self._prompt_sources.git_access_for(repository)
        if not selector.allow_tokens and selector.token is None:
            self._check_token_use(repository, access)
        access = repository.with_token(access, selector.token)
        return _ParsedOverride(repository, access, repository.key(access))

    def _check_token_use(self, repository: Repository, access: GitAccess) -> None:
        """Check that a client without access to the git tokens may read a repository.

        It may read what the server serves anyway. Raises: ScopeRequired.
        """
        configured = self._configured
        is_served = (
            isinstance(configured, Repository) and repository.reference == configured.reference
        )
        if access is self._prompt_sources.git_access and not is_served:
            reject_token_use(repository.reference.url, access.tokens)

    def _read_override(self, selector: SourceSelector, read: ReadSource) -> PromptSnapshot:
        sources = self._prompt_sources
        repository, access, key = self._parse_override(selector)
        reader = sources.build_reader(access)
        source, clone_key = RefreshingSource(sources.ttl, sources.clock), key[0]
        override = self._overrides.get_or_create(
            key, lambda: _Override(repository, source, clone_key)
        )

        def fetch(previous: PromptSnapshot | None) -> PromptSnapshot:
            return repository.fetch(previous, reader, self._checkouts, _OVERRIDE_CACHE_BYTES)

        try:
            return read(override.source, fetch)
        except (SkillhallError, OSError) as error:
            # An override that could not be read must not evict others.
            if override.source.cached_snapshot is None:
                self._overrides.drop(key, override)
            if isinstance(error, SourceRejected):
                raise
            raise to_source_error(repository.source, error) from None

    def _select_repository(self, selector: SourceSelector) -> Repository | None:
        """Return the repository of a request; None for uploads and folders."""
        if selector.source:
            return None
        if selector.repo:
            return parse_requested_repository(
                selector.repo, selector.path, selector.branch, self._prompt_sources.git_hosts
            )
        if not isinstance(self._configured, Repository):
            return None
        return self._configured.with_path_and_branch(selector.path, selector.branch)

    def _discard_clones(self, clone_keys: Iterable[str]) -> None:
        """Delete the given clones, except those that a source uses."""
        access = self._prompt_sources.git_access
        used = {override.clone_key for override in self._overrides.values()}
        if isinstance(self._configured, Repository):
            used.add(self._configured.clone_key(access))
        for key in {*clone_keys} - used - self._followed.clone_keys():
            delete_clone(access.cache_directory, key)

    def _read_upload(self, source: str) -> PromptSnapshot:
        version = self._uploads.version(source)
        cached = self._upload_snapshots.get(source)
        if cached is not None and cached[0] == version and cached[1].is_readable:
            return cached[1]
        try:
            version, tree = self._uploads.read(source)
            checkout = self._checkouts.put(tree)
        except OSError as error:
            raise PromptsSourceError(source, describe_error(error)) from None
        snapshot = PromptSnapshot(
            source,
            checkout,
            source_findings=tree.findings,
            response_cache_bytes=_OVERRIDE_CACHE_BYTES,
        )
        if cached is None or cached[0] != version:
            log_skipped(snapshot.label, snapshot.skipped)
        self._upload_snapshots.put(source, (version, snapshot))
        return snapshot

    def _fetch_configured(self, previous: PromptSnapshot | None) -> PromptSnapshot:
        if isinstance(self._configured, Repository):
            reader = self._prompt_sources.build_reader(self._prompt_sources.git_access)
            return self._configured.fetch(previous, reader, self._checkouts, RESPONSE_CACHE_BYTES)
        if self._configured is None:
            return self._built_in
        return self._configured.fetch(previous, self._checkouts)

    def _poll(self) -> None:
        """Refresh the configured source if that is due."""
        if not self._configured_source.seconds_until_due:
            # The source records its failure; the next request reports any other error.
            with contextlib.suppress(Exception):
                self._configured_source.refresh(self._fetch_configured)

    def _seconds_until_poll(self) -> float | None:
        # With a TTL of 0, every request refreshes, so polling is not needed.
        if not self._prompt_sources.ttl:
            return None
        return max(self._configured_source.seconds_until_due, _MIN_POLL_INTERVAL)

    def _configured_status(self) -> SourceStatus:
        source = self._configured_source
        if source.cached_snapshot is not None or self._configured is None:
            return _build_status(source.cached_snapshot or self._built_in, source.checked_at)
        stale = self._to_stale(source.failure) if source.failure else None
        prompts = len(self._built_in.names)
        return SourceStatus(self._configured.source, "", prompts, stale, source.checked_at)

    def _to_stale(self, problem: str) -> Stale:
        source = "" if self._configured is None else self._configured.source
        return Stale(str(PromptsSourceError(source, problem)), "")


def _build_status(
    snapshot: PromptSnapshot, checked: str, role: SourceRole = "configured"
) -> SourceStatus:
    return SourceStatus(
        snapshot.source,
        snapshot.commit,
        len(snapshot.names),
        snapshot.stale,
        checked,
        role=role,
        skipped=snapshot.skipped,
    )


def _get_revision(snapshot: PromptSnapshot) -> str:
    return f"{snapshot.digest} {snapshot.folder}"


def _collect_skills(snapshots: Sequence[PromptSnapshot]) -> RepositorySkillSet:
    digest = snapshots[0].digest
    if len(snapshots) > 1:
        digests = "".join(snapshot.digest for snapshot in snapshots)
        digest = hashlib.sha256(digests.encode()).hexdigest()
    skills = tuple(skill for snapshot in snapshots for skill in snapshot.skills)
    origins = {each.folder: RepositoryOrigin(each.source, each.commit) for each in snapshots}
    return RepositorySkillSet(digest, skills, origins)
