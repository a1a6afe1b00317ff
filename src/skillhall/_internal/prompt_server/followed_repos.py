"""Followed repositories: added by users and refreshed in the background."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from skillhall._internal.background import BoundedPool, PollingThread, PoolFull
from skillhall._internal.prompt_server.followed_file import (
    FILE,
    MAX_FOLLOWED,
    FollowedList,
    check_can_add,
    format_followed,
    parse_followed,
    to_repository,
)
from skillhall._internal.prompt_server.prompt_model import SourceStatus, Stale
from skillhall._internal.prompt_server.refreshing_source import (
    RETRY_INTERVAL,
    RefreshingSource,
    to_source_error,
)
from skillhall._internal.prompt_server.repo_source import Repository
from skillhall._internal.sources.folder.candidate import format_os_error
from skillhall.errors import (
    ConfigInvalid,
    Conflict,
    FollowingOff,
    NoSkillThere,
    SkillhallError,
    SourceRejected,
    SourceTimedOut,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.prompt_server.checkout import CheckoutStore
    from skillhall._internal.prompt_server.prompt_model import FollowedRepository, SourceSelector
    from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot
    from skillhall._internal.prompt_server.refreshing_source import Fetch
    from skillhall._internal.prompt_server.service import PromptSources

    DiscardClones: TypeAlias = Callable[[Iterable[str]], None]  # takes keys of the clone cache

_RESPONSE_CACHE_BYTES = 0  # prompts of followed repositories are not served
_MAX_CONCURRENT = 4  # refreshes; each may take as long as git's timeout
_MAX_REFRESH_SECONDS = 120.0  # that a request waits for all repositories
_ALL_REPOSITORIES = "the followed repositories"
_MIN_POLL_INTERVAL = 1.0  # seconds
_THREAD = "skillhall-followed"


@dataclass(frozen=True, slots=True)
class _FollowedSource:
    """Followed repository with its cached contents."""

    followed: FollowedRepository
    source: RefreshingSource

    @property
    def is_due(self) -> bool:
        """Whether a refresh is due or the contents are gone."""
        return not self.source.seconds_until_due or self.is_missing

    @property
    def is_missing(self) -> bool:
        """Whether nothing is cached and no failure explains why."""
        return self.source.cached_snapshot is None and not self.source.failure

    def build_status(self) -> SourceStatus:
        snapshot, source = self.source.cached_snapshot, self.source
        name = format_followed(self.followed)
        stale = Stale(source.failure, "") if source.failure else None
        status = SourceStatus(name, "", 0, stale, source.checked_at, self.followed, "followed")
        if snapshot is None:
            return status
        return status._replace(
            commit=snapshot.commit,
            prompts=len(snapshot.skills),
            stale=snapshot.stale,
            skipped=snapshot.skipped,
        )


class FollowedRepositories:
    """Operations on followed repositories. Thread-safe.

    `snapshots` and `status` never wait for a refresh.
    """

    def __init__(
        self,
        prompt_sources: PromptSources,
        checkouts: CheckoutStore,
        discard_clones: DiscardClones,
        *,
        poll: bool,
    ) -> None:
        """`discard_clones` deletes the given clones, except those that a source uses."""
        self._discard_clones = discard_clones
        self._prompt_sources = prompt_sources
        self._checkouts = checkouts
        self._list = FollowedList(prompt_sources.data_directory, prompt_sources.audit_file(FILE))
        self._list_lock = threading.Lock()  # keeps the file and the sources consistent
        self._sources_lock = threading.Lock()
        self._pool = BoundedPool("refresh", _MAX_CONCURRENT, 2 * MAX_FOLLOWED)
        self._refreshes: dict[FollowedRepository, Future[None]] = {}  # in progress or done
        self._sources: dict[FollowedRepository, _FollowedSource] = {}
        # Why repositories cannot be added or removed.
        self.error: SkillhallError | None = None if prompt_sources.can_follow else FollowingOff()
        with contextlib.suppress(SkillhallError, OSError):  # the next change tries again
            self._list.recover()
        self._read_list()
        is_polling = poll and prompt_sources.can_follow
        self._poller = (
            PollingThread(self._poll, self._seconds_until_poll, _THREAD) if is_polling else None
        )

    def follow(self, selector: SourceSelector, actor: Actor) -> SourceStatus:
        """Read a repository and add it. Raises: as `PromptService.follow`."""
        self._check_enabled()
        followed = parse_followed(selector, self._prompt_sources.git_hosts)
        # Fail before the fetch; `FollowedList.add` checks again, under its lock.
        check_can_add(followed, self._list.read())
        configured = self._prompt_sources.configured
        if isinstance(configured, Repository):
            requested = to_repository(followed, self._prompt_sources.git_hosts).reference
            if requested == configured.reference:
                raise Conflict(
                    format_followed(followed),
                    "this repository is already configured in the settings",
                )
        try:
            source = self._read_source(followed)
            with self._list_lock:
                self._set_sources(self._list.add(followed, actor), source)
        except (SkillhallError, OSError):
            self._discard_clones(self._build_clone_keys([followed]))
            raise
        self._wake()
        return source.build_status()

    def unfollow(self, key: str, actor: Actor) -> FollowedRepository:
        """Remove a repository. Raises: as `PromptService.unfollow`."""
        self._check_enabled()
        with self._list_lock:
            removed, remaining = self._list.remove(key, actor)
            self._set_sources(remaining)
        self._discard_clones(self._build_clone_keys([removed]))
        return removed

    def refresh(self) -> None:
        """Refresh all repositories now. Raises: SourceTimedOut if that takes too long."""
        self._read_list()
        sources = self._list_sources()
        for source in sources:
            source.source.expire()  # a refresh in progress may have read the old state
        _, running = wait([*map(self._start_refresh, sources)], _MAX_REFRESH_SECONDS)
        if running:
            problem = f"{len(running)} did not respond within {_MAX_REFRESH_SECONDS:g} seconds"
            raise SourceTimedOut(_ALL_REPOSITORIES, problem)

    def snapshots(self) -> list[PromptSnapshot]:
        """Return the cached snapshots without stale marks, in insertion order.

        Repositories without a readable snapshot are left out.
        """
        sources = self._list_sources()
        if any(source.is_missing for source in sources):
            self._wake()
        snapshots = [source.source.cached_snapshot for source in sources]
        return [each.with_stale(None) for each in snapshots if each is not None]

    def status(self) -> list[SourceStatus]:
        """Return the status of each repository."""
        return [source.build_status() for source in self._list_sources()]

    def expire(self, urls: Sequence[str], branch: str) -> bool:
        """Mark a pushed repository as due for a refresh; return whether it is followed."""
        affected = []
        for source in self._list_sources():
            repositories = self._to_repositories([source.followed])
            if any(repository.is_affected_by_push(urls, branch) for repository in repositories):
                source.source.expire()
                affected.append(source)
        if affected:
            self._wake()
        return bool(affected)

    def clone_keys(self) -> set[str]:
        """Return the clone cache keys of the followed repositories."""
        return self._build_clone_keys(source.followed for source in self._list_sources())

    def close(self) -> None:
        """Stop polling."""
        if self._poller is not None:
            self._poller.close()

    def _check_enabled(self) -> None:
        if not self._prompt_sources.can_follow:
            raise FollowingOff

    def _create_source(self, followed: FollowedRepository) -> _FollowedSource:
        # Refreshes run in the background, not per request: a TTL of 0 would repeat them constantly.
        ttl = max(self._prompt_sources.ttl, RETRY_INTERVAL)
        return _FollowedSource(followed, RefreshingSource(ttl, self._prompt_sources.clock))

    def _build_clone_keys(self, followed: Iterable[FollowedRepository]) -> set[str]:
        repositories = self._to_repositories(followed)
        return {r.clone_key(self._prompt_sources.git_access_for(r)) for r in repositories}

    def _read_source(self, followed: FollowedRepository) -> _FollowedSource:
        """Read a new source. Raises: SourceRejected, PromptsSourceError, NoSkillThere."""
        source, name = self._create_source(followed), format_followed(followed)
        try:
            snapshot = source.source.refresh(self._build_fetch(followed))
        except SourceRejected:
            raise
        except (SkillhallError, OSError) as error:
            raise to_source_error(name, error) from None
        if not snapshot.skills:
            raise NoSkillThere(name, "name the folder that contains the skill folders")
        return source

    def _build_fetch(self, followed: FollowedRepository) -> Fetch:
        sources = self._prompt_sources

        def fetch(previous: PromptSnapshot | None) -> PromptSnapshot:
            # Parse it again: the settings may have changed since it was added. The name includes
            # the folder and the branch, because one repository can be followed twice.
            parsed = to_repository(followed, sources.git_hosts)
            repository = replace(parsed, source=format_followed(followed))
            reader = sources.build_reader(sources.git_access_for(repository))
            return repository.fetch(previous, reader, self._checkouts, _RESPONSE_CACHE_BYTES)

        return fetch

    def _set_sources(self, followed: Iterable[FollowedRepository], *new: _FollowedSource) -> None:
        """Set the sources to these repositories, in this order; reuse existing sources."""
        with self._sources_lock:
            known = {**self._sources, **{source.followed: source for source in new}}
            self._sources = {
                item: known.get(item) or self._create_source(item) for item in followed
            }
        self.error = None

    def _read_list(self) -> None:
        """Read the list from the file. If that fails, keep the sources and set `error`."""
        if not self._prompt_sources.can_follow:
            return
        try:
            with self._list_lock:
                self._set_sources(self._list.read())
        except SkillhallError as error:
            self.error = error
        except OSError as error:
            self.error = ConfigInvalid(FILE, format_os_error(error))

    def _list_sources(self) -> list[_FollowedSource]:
        with self._sources_lock:
            return [*self._sources.values()]

    def _to_repositories(self, followed: Iterable[FollowedRepository]) -> list[Repository]:
        """Return the repositories that the settings allow."""
        repositories = []
        for item in followed:
            with contextlib.suppress(SourceRejected):
                repositories.append(to_repository(item, self._prompt_sources.git_hosts))
        return repositories

    def _wake(self) -> None:
        if self._poller is not None:
            self._poller.wake()

    def _poll(self) -> None:
        """Refresh the sources that are due."""
        self._read_list()
        # Does not wait for them: a repository that hangs must not delay the next poll.
        for source in self._list_sources():
            if source.is_due:
                with contextlib.suppress(SourceTimedOut):
                    self._start_refresh(source)

    def _start_refresh(self, source: _FollowedSource) -> Future[None]:
        """Start a refresh of a source, or join the one in progress; return its future.

        Raises: SourceTimedOut if the pool is full.
        """

        def refresh() -> None:
            with contextlib.suppress(Exception):  # the source records its failure
                source.source.refresh(self._build_fetch(source.followed))

        with self._sources_lock:
            future = self._refreshes.get(source.followed)
            if future is None or future.done():
                self._refreshes = {
                    key: known for key, known in self._refreshes.items() if not known.done()
                }
                try:
                    future = self._pool.submit(refresh)
                except PoolFull:  # of removed repositories that hang
                    problem = "too many refreshes are in progress"
                    raise SourceTimedOut(_ALL_REPOSITORIES, problem) from None
                future.add_done_callback(lambda _: self._wake())  # to plan the next refresh
                self._refreshes[source.followed] = future
        return future

    def _is_refreshing(self, source: _FollowedSource) -> bool:
        future = self._refreshes.get(source.followed)
        return future is not None and not future.done()

    def _seconds_until_poll(self) -> float | None:
        # A source whose refresh is in progress wakes the poller when it ends.
        delays = [
            source.source.seconds_until_due
            for source in self._list_sources()
            if not self._is_refreshing(source)
        ]
        return max(min(delays), _MIN_POLL_INTERVAL) if delays else None
