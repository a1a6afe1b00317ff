"""Prompt service: selects the source of a request and serves its prompts."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from skillhall._internal.background import PollingThread
from skillhall._internal.catalog.skip_log import log_skipped
from skillhall._internal.hints import TOKEN_HINTS, find_hint
from skillhall._internal.prompts.checkout import CheckoutStore
from skillhall._internal.prompts.followed_repos import FollowedRepositories, FollowedSkills
from skillhall._internal.prompts.prompt_model import BUILT_IN, SourceSelector, SourceStatus, Stale
from skillhall._internal.prompts.prompt_snapshot import (
    RESPONSE_CACHE_BYTES,
    PromptContents,
    PromptSnapshotView,
)
from skillhall._internal.prompts.refreshing_source import (
    Clock,
    FetchedContents,
    RefreshingSource,
    describe_error,
)
from skillhall._internal.prompts.repo_reader import GitHubReader, GitReader
from skillhall._internal.prompts.repo_source import (
    GitHosts,
    LocalFolder,
    Repository,
    parse_requested_repository,
)
from skillhall._internal.prompts.uploads.folder_uploads import MAX_SOURCES, FolderUploads
from skillhall._internal.prompts.uploads.rules import normalize_source_name
from skillhall._internal.sources.git.clone_cache import delete_clone
from skillhall._internal.sources.token_scope import TokenScope
from skillhall.errors import PromptsSourceError, SkillhallError, SourceRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillhall._internal.prompts.prompt_model import (
        FollowedRepository,
        IngestResult,
        SourceRole,
        Upload,
    )
    from skillhall._internal.prompts.refreshing_source import Fetch
    from skillhall._internal.prompts.repo_reader import RepositoryReader
    from skillhall._internal.prompts.uploads.folder_uploads import Uploads
    from skillhall._internal.sources.git.remote import GitAccess
    from skillhall._internal.sources.github.client import GitHubAccess

    ReadSource: TypeAlias = Callable[[RefreshingSource, Fetch], PromptSnapshotView]
    PublishChange: TypeAlias = Callable[[Sequence[str], str], None]  # takes URLs and a branch

_CONFIGURED_SOURCE = SourceSelector()
MAX_OVERRIDES = 32  # cached repositories that requests named
_OVERRIDE_CACHE_BYTES = 8 * 1024 * 1024  # for the responses of each override
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
    uploads: Uploads | None = None  # defaults to folders in the data directory
    publish_change: PublishChange = lambda *_: None  # notifies other servers
    can_follow: bool = True  # whether users may add repositories

    def git_access_for(self, repository: Repository) -> GitAccess:
        """Return how to access a repository. Only the operator's repositories get tokens."""
        url, configured = repository.reference.url, self.configured
        is_configured = isinstance(configured, Repository) and url == configured.reference.url
        if is_configured or self.token_scope.includes(url):
            return self.git_access
        return self.git_access.without_credentials()

    def build_reader(self, access: GitAccess) -> RepositoryReader:
        """Return a reader with the tokens of an access."""
        if self.github_access is None:
            return GitReader(access)
        github = self.github_access
        if access is not self.git_access:  # the request's own token, for the repository's host
            token = next(iter(access.tokens.values()), None)
            github = replace(github, tokens={github.authority: token} if token else {})
        return GitHubReader(github, self.git_hosts.github_url)


class PromptService:
    """Prompt server over the built-in prompts and the configured sources. Thread-safe."""

    def __init__(self, prompt_sources: PromptSources, *, poll: bool = False) -> None:
        self._prompt_sources = prompt_sources
        self._checkouts = CheckoutStore(prompt_sources.git_access.cache_directory)
        self._uploads = prompt_sources.uploads or FolderUploads(prompt_sources.data_directory)
        self._built_in = PromptContents(BUILT_IN)
        self._configured_source = RefreshingSource(
            prompt_sources.ttl, prompt_sources.clock, delay_retries=True
        )
        self._lock = threading.Lock()
        self._overrides: OrderedDict[tuple[str, ...], tuple[Repository, RefreshingSource]] = (
            OrderedDict()
        )
        self._upload_snapshots: OrderedDict[str, tuple[str, PromptSnapshotView]] = OrderedDict()
        is_polling = poll and prompt_sources.configured is not None
        self._poller = (
            PollingThread(self._poll, self._seconds_until_poll, _THREAD) if is_polling else None
        )
        self._followed = FollowedRepositories(
            prompt_sources, self._checkouts, self._discard_clones, poll=poll
        )
        self._cached_skills: FollowedSkills | None = None

    def snapshot(self, selector: SourceSelector = _CONFIGURED_SOURCE) -> PromptSnapshotView:
        """Return the current snapshot. It is read on first use and refreshed when due.

        Raises: PromptsSourceError, SourceUnknown, SourceRejected.
        """
        return self._read_snapshot(selector, RefreshingSource.snapshot)

    def cached_snapshot(
        self, selector: SourceSelector = _CONFIGURED_SOURCE
    ) -> PromptSnapshotView | None:
        """Return the snapshot if no refresh is due, else None. Never blocks."""
        if selector != _CONFIGURED_SOURCE:
            return None
        if self._prompt_sources.configured is None:
            return PromptSnapshotView(self._built_in)
        return (
            self._configured_source.cached_snapshot
            if self._configured_source.seconds_until_due
            else None
        )

    def refresh(self, selector: SourceSelector = _CONFIGURED_SOURCE) -> PromptSnapshotView:
        """Refresh a source and notify other servers. Raises: as `snapshot`."""
        snapshot = self._read_snapshot(selector, RefreshingSource.refresh)
        repository = self._select_repository(selector)
        if repository is not None:
            self._prompt_sources.publish_change(
                [repository.canonical_url], repository.reference.ref
            )
        return snapshot

    def ingest(self, upload: Upload) -> IngestResult:
        """Store an upload under its name. Raises: UploadRejected, TooLarge, OSError."""
        return self._uploads.ingest(upload)

    def handle_push(self, urls: Sequence[str], branch: str) -> bool:
        """Mark a pushed repository as due; return whether it is in use."""
        is_ours = self.expire(urls, branch)
        self._prompt_sources.publish_change(urls, branch)
        return is_ours

    def expire(self, urls: Sequence[str], branch: str) -> bool:
        """As `handle_push`, for an event of another server: it is not published again."""
        with self._lock:
            known = list(self._overrides.values())
        configured = self._prompt_sources.configured
        if isinstance(configured, Repository):
            known.append((configured, self._configured_source))
        affected = [source for repo, source in known if repo.is_affected_by_push(urls, branch)]
        for source in affected:
            source.expire()
        if self._poller is not None and self._configured_source in affected:
            self._poller.wake()
        return self._followed.expire(urls, branch) or bool(affected)

    def status(self) -> Sequence[SourceStatus]:
        """Return the status of all sources: configured, followed, then the others."""
        with self._lock:
            others = list(self._overrides.values())
            uploaded = [snapshot for _, snapshot in self._upload_snapshots.values()]
        statuses = [self._configured_status(), *self._followed.status()]
        for _, source in others:
            if (snapshot := source.cached_snapshot) is not None:
                statuses.append(_build_status(snapshot, source.checked_at, "override"))
        return [*statuses, *(_build_status(snapshot, "", "upload") for snapshot in uploaded)]

    def skills(self) -> FollowedSkills:
        """Return the skills of the configured source, then of the followed ones."""
        configured = self.cached_snapshot() or self.snapshot()
        contents = (configured.contents, *self._followed.contents())
        with self._lock:
            if self._cached_skills is None or self._cached_skills.contents != contents:
                self._cached_skills = FollowedSkills.from_contents(contents)
            return self._cached_skills

    def follow(self, selector: SourceSelector) -> SourceStatus:
        """Read a repository and serve its skills. Raises: see `PromptServiceProtocol.follow`."""
        return self._followed.follow(selector)

    def unfollow(self, key: str) -> FollowedRepository:
        """Stop serving a repository. Raises: see `PromptServiceProtocol.unfollow`."""
        return self._followed.unfollow(key)

    def refresh_followed(self) -> None:
        """Refresh all followed repositories; `status` has the results."""
        self._followed.refresh()

    @property
    def follow_error(self) -> SkillhallError | None:
        """Reason why no repository can be followed, or None."""
        return self._followed.error

    def close(self) -> None:
        """Stop polling and delete the files of this process."""
        self._followed.close()
        if self._poller is not None:
            self._poller.close()
        self._checkouts.close()

    def _read_snapshot(self, selector: SourceSelector, read: ReadSource) -> PromptSnapshotView:
        names_repository = bool(selector.repo or selector.path or selector.branch)
        if selector.source:
            if names_repository:
                problem = "an uploaded source has no repository, path or branch"
                raise SourceRejected("url", selector.source, problem, "ask for one or the other")
            return self._read_upload(selector.source)
        has_own_token = selector.token and isinstance(self._prompt_sources.configured, Repository)
        if names_repository or has_own_token:
            return self._read_override(selector, read)
        return self._read_configured(read)

    def _read_configured(self, read: ReadSource) -> PromptSnapshotView:
        """Read the configured source; if that fails, return the built-in prompts as stale."""
        if self._prompt_sources.configured is None:
            return PromptSnapshotView(self._built_in)
        try:
            return read(self._configured_source, self._fetch_configured)
        except (SkillhallError, OSError) as error:
            return PromptSnapshotView(self._built_in, self._to_stale(describe_error(error)))

    def _read_override(self, selector: SourceSelector, read: ReadSource) -> PromptSnapshotView:
        repository, access = self._resolve_override(selector)
        key, reader = repository.key(access), self._prompt_sources.build_reader(access)
        source = self._get_override_source(key, repository)

        def fetch(previous: PromptContents | None) -> FetchedContents:
            return repository.fetch(previous, reader, self._checkouts, _OVERRIDE_CACHE_BYTES)

        try:
            return read(source, fetch)
        except SourceRejected:
            self._forget_override(key, source)
            raise
        except (SkillhallError, OSError) as error:
            self._forget_override(key, source)
            hint = find_hint(error, TOKEN_HINTS) if isinstance(error, SkillhallError) else ""
            raise PromptsSourceError(repository.source, describe_error(error), hint) from None

    def _resolve_override(self, selector: SourceSelector) -> tuple[Repository, GitAccess]:
        """Return the repository of a request, and the access to it."""
        repository = self._select_repository(selector)
        if repository is None:
            text, hint = selector.path or selector.branch, "name the repository too"
            raise SourceRejected("path", text, "no repository is configured", hint)
        return repository, repository.with_token(
            self._prompt_sources.git_access_for(repository), selector.token
        )

    def _select_repository(self, selector: SourceSelector) -> Repository | None:
        """Return the repository of a request; None for uploads and folders."""
        if selector.source:
            return None
        if selector.repo:
            return parse_requested_repository(
                selector.repo, selector.path, selector.branch, self._prompt_sources.git_hosts
            )
        configured = self._prompt_sources.configured
        if not isinstance(configured, Repository):
            return None
        return configured.with_path_and_branch(selector.path, selector.branch)

    def _get_override_source(
        self, key: tuple[str, ...], repository: Repository
    ) -> RefreshingSource:
        """Return the source of an override, which becomes the most recently used one."""
        with self._lock:
            if key not in self._overrides:
                source = RefreshingSource(self._prompt_sources.ttl, self._prompt_sources.clock)
                self._overrides[key] = repository, source
            self._overrides.move_to_end(key)
            source = self._overrides[key][1]
            excess = len(self._overrides) - self._prompt_sources.max_overrides
            evicted = [self._overrides.popitem(last=False)[0] for _ in range(max(excess, 0))]
        if evicted:
            self._discard_clones({clone_key for clone_key, *_ in evicted})
        return source

    def _discard_clones(self, clone_keys: Iterable[str]) -> None:
        """Delete the clones that no source uses."""
        with self._lock:
            used = {clone_key for clone_key, *_ in self._overrides}
        configured = self._prompt_sources.configured
        if isinstance(configured, Repository):
            used.add(configured.clone_key(self._prompt_sources.git_access))
        for key in {*clone_keys} - used - self._followed.clone_keys():
            delete_clone(self._prompt_sources.git_access.cache_directory, key)

    def _forget_override(self, key: tuple[str, ...], source: RefreshingSource) -> None:
        """Drop an override that could not be read, so that it does not evict others."""
        with self._lock:
            cached_source = self._overrides.get(key, (None, None))[1]
            if source.cached_snapshot is None and cached_source is source:
                del self._overrides[key]

    def _read_upload(self, requested_name: str) -> PromptSnapshotView:
        source = normalize_source_name(requested_name)
        version = self._uploads.version(source)
        with self._lock:
            cached = self._upload_snapshots.get(source)
        if cached is not None and cached[0] == version and cached[1].contents.is_readable:
            return cached[1]
        try:
            version, tree = self._uploads.read(source)
            checkout = self._checkouts.put(tree)
        except OSError as error:
            raise PromptsSourceError(source, describe_error(error)) from None
        contents = PromptContents(
            source,
            checkout,
            source_findings=tree.findings,
            response_cache_bytes=_OVERRIDE_CACHE_BYTES,
        )
        if cached is None or cached[0] != version:
            log_skipped(contents.label, contents.skipped)
        with self._lock:
            self._upload_snapshots[source] = version, PromptSnapshotView(contents)
            self._upload_snapshots.move_to_end(source)
            while len(self._upload_snapshots) > MAX_SOURCES:
                self._upload_snapshots.popitem(last=False)
        return PromptSnapshotView(contents)

    def _fetch_configured(self, previous: PromptContents | None) -> FetchedContents:
        configured = self._prompt_sources.configured
        if isinstance(configured, Repository):
            reader = self._prompt_sources.build_reader(self._prompt_sources.git_access)
            return configured.fetch(previous, reader, self._checkouts, RESPONSE_CACHE_BYTES)
        if configured is None:
            return FetchedContents(self._built_in)
        return configured.fetch(previous, self._checkouts)

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
        source, configured = self._configured_source, self._prompt_sources.configured
        if source.cached_snapshot is not None or configured is None:
            snapshot = source.cached_snapshot or PromptSnapshotView(self._built_in)
            return _build_status(snapshot, source.checked_at)
        stale = self._to_stale(source.failure) if source.failure else None
        prompts = len(self._built_in.names)
        return SourceStatus(configured.source, "", prompts, stale, source.checked_at)

    def _to_stale(self, problem: str) -> Stale:
        configured = self._prompt_sources.configured
        source = "" if configured is None else configured.source
        return Stale(str(PromptsSourceError(source, problem)), "")


def _build_status(
    snapshot: PromptSnapshotView, checked: str, role: SourceRole = "configured"
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
