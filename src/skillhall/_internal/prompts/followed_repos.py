"""Following: the repositories that people added, each with a feed that nobody pushes out."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.background import PollingThread
from skillhall._internal.prompts.followed_file import (
    FILE,
    FollowedList,
    check_can_add,
    format_followed,
    parse_followed,
    to_repository,
)
from skillhall._internal.prompts.prompt_model import SourceStatus, Stale
from skillhall._internal.prompts.refreshing_source import (
    RETRY_INTERVAL,
    RefreshingSource,
    describe_error,
)
from skillhall._internal.prompts.repo_source import Repository
from skillhall._internal.sources.folder.candidate import format_os_error
from skillhall.errors import (
    ConfigInvalid,
    Conflict,
    FollowingOff,
    NoSkillThere,
    PromptsSourceError,
    SkillhallError,
    SourceRejected,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.prompts.checkout import CheckoutStore
    from skillhall._internal.prompts.prompt_model import FollowedRepository, SourceSelector
    from skillhall._internal.prompts.prompt_snapshot import PromptContents
    from skillhall._internal.prompts.refreshing_source import FetchedContents
    from skillhall._internal.prompts.service import PromptSources

    DiscardClones: TypeAlias = Callable[
        [Iterable[str]], None
    ]  # what git's own copies are kept under

_RESPONSE_CACHE_BYTES = 0  # bytes of answers that are kept: its prompts are not handed out
_MAX_CONCURRENT = 4  # looks; each may take git's whole time
_MIN_POLL_INTERVAL = 1.0  # seconds
_THREAD = "skillhall-followed"


class FollowedSkills(NamedTuple):
    """The skills of several sources, in order, for as long as they can be read."""

    contents: tuple[PromptContents, ...]
    digest: str  # changes with any of them
    skills: tuple[Skill, ...]

    @classmethod
    def from_contents(cls, contents: tuple[PromptContents, ...]) -> FollowedSkills:
        """All skills of all contents."""
        digests = [one.digest for one in contents]
        digest = hashlib.sha256("".join(digests).encode()).hexdigest()
        skills = tuple(skill for one in contents for skill in one.skills)
        return cls(contents, digest if digests[1:] else digests[0], skills)


@dataclass(frozen=True, slots=True)
class _FollowedSource:
    """One that is followed, and what was read of it."""

    followed: FollowedRepository
    source: RefreshingSource

    @property
    def is_due(self) -> bool:
        """Whether it is time to look, or what was read is gone."""
        return not self.source.seconds_until_due or self.is_missing

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing to give, and no look has told why."""
        return self.source.cached_snapshot is None and not self.source.failure

    def build_status(self) -> SourceStatus:
        """How it stands."""
        kept, feed = self.source.cached_snapshot, self.source
        name = format_followed(self.followed)
        if kept is None:
            stale = Stale(feed.failure, "") if feed.failure else None
            return SourceStatus(name, "", 0, stale, feed.checked_at, self.followed, "followed")
        number = len(kept.contents.skills)
        status = SourceStatus(name, kept.commit, number, kept.stale, feed.checked_at, self.followed)
        return status._replace(role="followed", skipped=kept.skipped)


class FollowedRepositories:
    """The verbs on what is followed; thread-safe. Requests never wait for a look but their own."""

    def __init__(
        self,
        prompt_sources: PromptSources,
        checkouts: CheckoutStore,
        discard_clones: DiscardClones,
        *,
        poll: bool,
    ) -> None:
        """`discard` removes those of git's own copies that nothing else is read from."""
        self._discard_clones = discard_clones
        self._prompt_sources = prompt_sources
        self._checkouts = checkouts
        self._list = FollowedList(prompt_sources.data_directory)
        self._list_lock = threading.Lock()  # the list and the sources, together
        self._sources_lock = threading.Lock()
        self._concurrency = threading.BoundedSemaphore(_MAX_CONCURRENT)
        self._sources: dict[FollowedRepository, _FollowedSource] = {}
        self._error: SkillhallError | None = None if prompt_sources.can_follow else FollowingOff()
        self._read_list()
        is_watched = poll and prompt_sources.can_follow
        self._poller = (
            PollingThread(self._poll, self._seconds_until_poll, _THREAD) if is_watched else None
        )

    @property
    def error(self) -> SkillhallError | None:
        """Why nothing can be added or removed; None if it can."""
        return self._error

    def follow(self, selector: SourceSelector) -> SourceStatus:
        """Read a repository, then keep it. Raises: as `Counter.follow`."""
        followed = self._validate(selector)
        try:
            source = self._read_source(followed)
            with self._list_lock:
                self._set_sources(self._list.add(followed), source)
        except (SkillhallError, OSError):
            self._discard_clones(self._build_clone_keys([followed]))
            raise
        self._wake()
        return source.build_status()

    def unfollow(self, key: str) -> FollowedRepository:
        """Keep one no longer. Raises: as `Counter.unfollow`."""
        self._check_enabled()
        with self._list_lock:
            removed, those = self._list.remove(key)
            self._set_sources(those)
        self._discard_clones(self._build_clone_keys([removed]))
        return removed

    def refresh(self) -> None:
        """Look at all of them now."""
        self._read_list()
        self._refresh_all(self._list_sources())

    def contents(self) -> tuple[PromptContents, ...]:
        """What was read of each, in the order they were added."""
        sources = self._list_sources()
        if any(source.is_missing for source in sources):
            self._wake()
        kept = [source.source.cached_snapshot for source in sources]
        return tuple(snapshot.contents for snapshot in kept if snapshot is not None)

    def status(self) -> list[SourceStatus]:
        """How each of them stands."""
        return [source.build_status() for source in self._list_sources()]

    def expire(self, urls: Sequence[str], branch: str) -> bool:
        """Note that a repository has news; whether it is followed."""
        ours = [
            source
            for source in self._list_sources()
            if any(
                one.is_affected_by_push(urls, branch)
                for one in self._to_repositories([source.followed])
            )
        ]
        for source in ours:
            source.source.expire()
        if ours:
            self._wake()
        return bool(ours)

    def clone_keys(self) -> set[str]:
        """What git's own copies of them are kept under."""
        return self._build_clone_keys(source.followed for source in self._list_sources())

    def close(self) -> None:
        """Stop looking."""
        if self._poller is not None:
            self._poller.close()

    def _validate(self, selector: SourceSelector) -> FollowedRepository:
        """What is to be followed, unless that is clear to fail before anything is read."""
        self._check_enabled()
        followed = parse_followed(selector, self._prompt_sources.git_hosts)
        check_can_add(followed, self._list.read())
        configured = self._prompt_sources.configured
        if isinstance(configured, Repository):
            wanted = to_repository(followed, self._prompt_sources.git_hosts).reference
            if wanted == configured.reference:
                raise Conflict(format_followed(followed), "it is the one in the settings")
        return followed

    def _check_enabled(self) -> None:
        if not self._prompt_sources.can_follow:
            raise FollowingOff

    def _create_source(self) -> RefreshingSource:
        # Nobody waits for these looks, so nothing is gained by one for every request.
        return RefreshingSource(
            max(self._prompt_sources.ttl, RETRY_INTERVAL), self._prompt_sources.clock
        )

    def _build_clone_keys(self, followed: Iterable[FollowedRepository]) -> set[str]:
        found = self._to_repositories(followed)
        return {one.clone_key(self._prompt_sources.git_access_for(one)) for one in found}

    def _read_source(self, followed: FollowedRepository) -> _FollowedSource:
        """One that has skills. Raises: SourceRejected, PromptsSourceError, NoSkillThere."""
        source = _FollowedSource(followed, self._create_source())
        try:
            snapshot = source.source.refresh(self._build_fetch(followed))
        except SourceRejected:
            raise
        except (SkillhallError, OSError) as error:
            hint = error.hint if isinstance(error, SkillhallError) else ""
            raise PromptsSourceError(
                format_followed(followed), describe_error(error), hint
            ) from None
        if not snapshot.contents.skills:
            hint = "name the folder in which the folders with a SKILL.md are"
            raise NoSkillThere(format_followed(followed), hint)
        return source

    def _build_fetch(
        self, followed: FollowedRepository
    ) -> Callable[[PromptContents | None], FetchedContents]:
        def look(kept: PromptContents | None) -> FetchedContents:
            # What the operator allows may have changed since it was added.
            # Its name says the folder and the branch too: one repository can be followed twice.
            found = to_repository(followed, self._prompt_sources.git_hosts)
            repository = replace(found, source=format_followed(followed))
            reader = self._prompt_sources.build_reader(
                self._prompt_sources.git_access_for(repository)
            )
            return repository.fetch(kept, reader, self._checkouts, _RESPONSE_CACHE_BYTES)

        return look

    def _set_sources(self, followed: Iterable[FollowedRepository], *read: _FollowedSource) -> None:
        """Have a source for each of these, in this order, and for no other."""
        with self._sources_lock:
            known = {**self._sources, **{source.followed: source for source in read}}
            self._sources = {
                one: known.get(one) or _FollowedSource(one, self._create_source())
                for one in followed
            }
        self._error = None

    def _read_list(self) -> None:
        """What the file says; while it cannot be read, what it said before."""
        if not self._prompt_sources.can_follow:
            return
        try:
            with self._list_lock:
                self._set_sources(self._list.read())
        except SkillhallError as error:
            self._error = error
        except OSError as error:
            self._error = ConfigInvalid(FILE, format_os_error(error))

    def _list_sources(self) -> list[_FollowedSource]:
        with self._sources_lock:
            return [*self._sources.values()]

    def _to_repositories(self, followed: Iterable[FollowedRepository]) -> list[Repository]:
        """Those that may be looked at."""
        found = []
        for one in followed:
            with contextlib.suppress(SourceRejected):
                found.append(to_repository(one, self._prompt_sources.git_hosts))
        return found

    def _wake(self) -> None:
        if self._poller is not None:
            self._poller.wake()

    def _poll(self) -> None:
        """A look at those whose time is over, by the watch."""
        self._read_list()
        self._refresh_all([source for source in self._list_sources() if source.is_due])

    def _refresh_all(self, sources: Sequence[_FollowedSource]) -> None:
        """Look at several; a few slow ones keep no other waiting."""
        threads = [
            threading.Thread(target=self._refresh_source, args=[one], daemon=True)
            for one in sources
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _refresh_source(self, source: _FollowedSource) -> None:
        # What goes wrong is noted in the feed.
        with self._concurrency, contextlib.suppress(Exception):
            source.source.refresh(self._build_fetch(source.followed))

    def _seconds_until_poll(self) -> float | None:
        """Until the next one is due."""
        left = [source.source.seconds_until_due for source in self._list_sources()]
        return max(min(left), _MIN_POLL_INTERVAL) if left else None
