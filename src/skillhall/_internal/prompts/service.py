"""The counter: which source a call is about, and what is handed out from it."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from skillhall._internal.background import PollingThread
from skillhall._internal.catalog.skip_log import log_skipped
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
from skillhall._internal.sources.git.token_scope import TokenScope
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
    from skillhall._internal.sources.git.source import GitAccess
    from skillhall._internal.sources.github.client import GitHubAccess

    ReadSource: TypeAlias = Callable[[RefreshingSource, Fetch], PromptSnapshotView]
    PublishChange: TypeAlias = Callable[[Sequence[str], str], None]  # its addresses, and the branch

_CONFIGURED_SOURCE = SourceSelector()
MAX_OVERRIDES = 32  # repositories that calls asked for and that are kept
_OVERRIDE_CACHE_BYTES = 8 * 1024 * 1024  # bytes of answers that are kept of each of them
_MIN_POLL_INTERVAL = 1.0  # seconds
_THREAD = "skillhall-prompts"


@dataclass(frozen=True, slots=True)
class PromptSources:
    """Where prompts come from, and how it is reached."""

    git_access: GitAccess  # for the operator's repositories
    data_directory: str
    git_hosts: GitHosts
    configured: Repository | LocalFolder | None = None
    ttl: float = 86400.0  # seconds
    max_overrides: int = MAX_OVERRIDES
    clock: Clock = field(default_factory=Clock)
    # The repositories that the operator's tokens are for.
    token_scope: TokenScope = field(default_factory=TokenScope)
    github_access: GitHubAccess | None = None  # instead of git, if that is not to be used
    uploads: Uploads | None = None  # folders in the data directory, if it is not given
    publish_change: PublishChange = lambda *_: None  # tells other servers which repository has news
    can_follow: bool = True  # whether people may add repositories, in a list of this server's own

    def git_access_for(self, repository: Repository) -> GitAccess:
        """The access to a repository that anybody named: tokens go to the operator's alone."""
        url, configured = repository.reference.url, self.configured
        is_configured = isinstance(configured, Repository) and url == configured.reference.url
        if is_configured or self.token_scope.includes(url):
            return self.git_access
        return self.git_access.without_credentials()

    def build_reader(self, access: GitAccess) -> RepositoryReader:
        """The way to a repository, with the tokens of an access."""
        if self.github_access is None:
            return GitReader(access)
        github = self.github_access
        if access is not self.git_access:  # a call's own token, which its repository's host may see
            token = next(iter(access.tokens.values()), None)
            github = replace(github, tokens={github.authority: token} if token else {})
        return GitHubReader(github, self.git_hosts.github_url)


class PromptService:
    """The verbs of a prompt server, over the built-in prompts and one supply; thread-safe."""

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
        is_watched = poll and prompt_sources.configured is not None
        self._poller = (
            PollingThread(self._poll, self._seconds_until_poll, _THREAD) if is_watched else None
        )
        self._followed = FollowedRepositories(
            prompt_sources, self._checkouts, self._discard_clones, poll=poll
        )
        self._cached_skills: FollowedSkills | None = None

    def snapshot(self, selector: SourceSelector = _CONFIGURED_SOURCE) -> PromptSnapshotView:
        """What is handed out now; read at the first call, and again when its time is over.

        Raises: PromptsSourceError, SourceUnknown, SourceRejected.
        """
        return self._read_snapshot(selector, RefreshingSource.snapshot)

    def cached_snapshot(
        self, selector: SourceSelector = _CONFIGURED_SOURCE
    ) -> PromptSnapshotView | None:
        """What is handed out now, if nothing must be read for it."""
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
        """The newest, now; other servers are told to look too. Raises: as `snapshot`."""
        snapshot = self._read_snapshot(selector, RefreshingSource.refresh)
        repository = self._select_repository(selector)
        if repository is not None:
            self._prompt_sources.publish_change(
                [repository.canonical_url], repository.reference.ref
            )
        return snapshot

    def ingest(self, upload: Upload) -> IngestResult:
        """Keep an upload under its name. Raises: UploadRejected, TooLarge, OSError."""
        return self._uploads.ingest(upload)

    def handle_push(self, urls: Sequence[str], branch: str) -> bool:
        """Note that a repository has news; whether it is one of ours. It is refreshed soon."""
        is_ours = self.expire(urls, branch)
        self._prompt_sources.publish_change(urls, branch)
        return is_ours

    def expire(self, urls: Sequence[str], branch: str) -> bool:
        """The same, told by another server, which has told everybody."""
        with self._lock:
            known = list(self._overrides.values())
        configured = self._prompt_sources.configured
        if isinstance(configured, Repository):
            known.append((configured, self._configured_source))
        ours = [feed for repository, feed in known if repository.is_affected_by_push(urls, branch)]
        for feed in ours:
            feed.expire()
        if self._poller is not None and self._configured_source in ours:
            self._poller.wake()
        return self._followed.expire(urls, branch) or bool(ours)

    def status(self) -> Sequence[SourceStatus]:
        """Every source that is in use, the configured one first, then those that are followed."""
        with self._lock:
            others = list(self._overrides.values())
            uploaded = [snapshot for _, snapshot in self._upload_snapshots.values()]
        found = [self._configured_status(), *self._followed.status()]
        for _, feed in others:
            if (kept := feed.cached_snapshot) is not None:
                found.append(_build_status(kept, feed.checked_at, "override"))
        return [*found, *(_build_status(snapshot, "", "upload") for snapshot in uploaded)]

    def skills(self) -> FollowedSkills:
        """The skills of the configured source, then of those that are followed."""
        configured = self.cached_snapshot() or self.snapshot()
        contents = (configured.contents, *self._followed.contents())
        with self._lock:
            if self._cached_skills is None or self._cached_skills.contents != contents:
                self._cached_skills = FollowedSkills.from_contents(contents)
            return self._cached_skills

    def follow(self, selector: SourceSelector) -> SourceStatus:
        """Read a repository, and give its skills from now on. Raises: as `Counter.follow`."""
        return self._followed.follow(selector)

    def unfollow(self, key: str) -> FollowedRepository:
        """Give the skills of a repository no longer. Raises: as `Counter.unfollow`."""
        return self._followed.unfollow(key)

    def refresh_followed(self) -> None:
        """Look at all that are followed, now; how it went, `status` says."""
        self._followed.refresh()

    @property
    def follow_error(self) -> SkillhallError | None:
        """Why no repository can be followed; None if they can."""
        return self._followed.error

    def close(self) -> None:
        """Stop looking, and remove what was only kept for this process."""
        self._followed.close()
        if self._poller is not None:
            self._poller.close()
        self._checkouts.close()

    def _read_snapshot(self, selector: SourceSelector, call: ReadSource) -> PromptSnapshotView:
        names_place = bool(selector.repo or selector.path or selector.branch)
        if selector.source:
            if names_place:
                problem = "an uploaded source has no repository, path or branch"
                raise SourceRejected("url", selector.source, problem, "ask for one or the other")
            return self._read_upload(selector.source)
        has_own_token = selector.token and isinstance(self._prompt_sources.configured, Repository)
        if names_place or has_own_token:
            return self._read_override(selector, call)
        return self._read_configured(call)

    def _read_configured(self, call: ReadSource) -> PromptSnapshotView:
        """The configured prompts; without them the built-in ones, and why."""
        if self._prompt_sources.configured is None:
            return PromptSnapshotView(self._built_in)
        try:
            return call(self._configured_source, self._fetch_configured)
        except (SkillhallError, OSError) as error:
            return PromptSnapshotView(self._built_in, self._to_stale(describe_error(error)))

    def _read_override(self, selector: SourceSelector, call: ReadSource) -> PromptSnapshotView:
        repository, access = self._resolve_override(selector)
        key, reader = repository.key(access), self._prompt_sources.build_reader(access)
        feed = self._get_override_source(key, repository)

        def look(kept: PromptContents | None) -> FetchedContents:
            return repository.fetch(kept, reader, self._checkouts, _OVERRIDE_CACHE_BYTES)

        try:
            return call(feed, look)
        except SourceRejected:
            self._forget_override(key, feed)
            raise
        except (SkillhallError, OSError) as error:
            self._forget_override(key, feed)
            hint = error.hint if isinstance(error, SkillhallError) else ""
            raise PromptsSourceError(repository.source, describe_error(error), hint) from None

    def _resolve_override(self, selector: SourceSelector) -> tuple[Repository, GitAccess]:
        """The repository that a call is about, and how it may be reached."""
        repository = self._select_repository(selector)
        if repository is None:
            text, hint = selector.path or selector.branch, "name the repository too"
            raise SourceRejected("path", text, "no repository is configured", hint)
        return repository, repository.with_token(
            self._prompt_sources.git_access_for(repository), selector.token
        )

    def _select_repository(self, selector: SourceSelector) -> Repository | None:
        """The repository that a call is about; none for uploads and folders."""
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
        """The feed of an override, which is now the last one that would go."""
        with self._lock:
            if key not in self._overrides:
                feed = RefreshingSource(self._prompt_sources.ttl, self._prompt_sources.clock)
                self._overrides[key] = repository, feed
            self._overrides.move_to_end(key)
            feed = self._overrides[key][1]
            too_many = len(self._overrides) - self._prompt_sources.max_overrides
            lost = [self._overrides.popitem(last=False)[0] for _ in range(max(too_many, 0))]
        if lost:
            self._discard_clones({one[0] for one in lost})
        return feed

    def _discard_clones(self, clone_keys: Iterable[str]) -> None:
        """Remove git's own copies that nothing is read from any more."""
        with self._lock:
            used = {kept[0] for kept in self._overrides}
        configured = self._prompt_sources.configured
        if isinstance(configured, Repository):
            used.add(configured.clone_key(self._prompt_sources.git_access))
        for copy in {*clone_keys} - used - self._followed.clone_keys():
            delete_clone(self._prompt_sources.git_access.cache_directory, copy)

    def _forget_override(self, key: tuple[str, ...], source: RefreshingSource) -> None:
        """Forget an override that was never read: it must not push others out."""
        with self._lock:
            if (
                source.cached_snapshot is None
                and self._overrides.get(key, (None, None))[1] is source
            ):
                del self._overrides[key]

    def _read_upload(self, requested_name: str) -> PromptSnapshotView:
        source = normalize_source_name(requested_name)
        version = self._uploads.version(source)
        with self._lock:
            known = self._upload_snapshots.get(source)
        if known is not None and known[0] == version and known[1].contents.is_readable:
            return known[1]
        try:
            version, tree = self._uploads.read(source)
            copy = self._checkouts.put(tree)
        except OSError as error:
            raise PromptsSourceError(source, describe_error(error)) from None
        contents = PromptContents(
            source, copy, source_findings=tree.findings, response_cache_bytes=_OVERRIDE_CACHE_BYTES
        )
        if known is None or known[0] != version:
            log_skipped(contents.label, contents.skipped)
        with self._lock:
            self._upload_snapshots[source] = version, PromptSnapshotView(contents)
            self._upload_snapshots.move_to_end(source)
            while len(self._upload_snapshots) > MAX_SOURCES:
                self._upload_snapshots.popitem(last=False)
        return PromptSnapshotView(contents)

    def _fetch_configured(self, previous: PromptContents | None) -> FetchedContents:
        """A look at the configured source."""
        configured = self._prompt_sources.configured
        if isinstance(configured, Repository):
            reader = self._prompt_sources.build_reader(self._prompt_sources.git_access)
            return configured.fetch(previous, reader, self._checkouts, RESPONSE_CACHE_BYTES)
        if configured is None:
            return FetchedContents(self._built_in)
        return configured.fetch(previous, self._checkouts)

    def _poll(self) -> None:
        """A look at the configured source if it is time, by the watch."""
        if not self._configured_source.seconds_until_due:
            # What goes wrong is noted; whatever else it is, the next caller meets it too.
            with contextlib.suppress(Exception):
                self._configured_source.refresh(self._fetch_configured)

    def _seconds_until_poll(self) -> float | None:
        """Until the watch looks again; callers look themselves if it is every time."""
        return (
            max(self._configured_source.seconds_until_due, _MIN_POLL_INTERVAL)
            if self._prompt_sources.ttl
            else None
        )

    def _configured_status(self) -> SourceStatus:
        feed, configured = self._configured_source, self._prompt_sources.configured
        if feed.cached_snapshot is not None or configured is None:
            return _build_status(
                feed.cached_snapshot or PromptSnapshotView(self._built_in), feed.checked_at
            )
        why = self._to_stale(feed.failure) if feed.failure else None
        return SourceStatus(configured.source, "", len(self._built_in.names), why, feed.checked_at)

    def _to_stale(self, problem: str) -> Stale:
        source = (
            ""
            if self._prompt_sources.configured is None
            else self._prompt_sources.configured.source
        )
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
