"""Following: the repositories that people added, each with a feed that nobody pushes out."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.background import Watch
from skillhall._internal.prompts.followed_file import (
    FILE,
    FollowedList,
    checked_followed,
    name_of,
    refuse_more,
    repository_of,
)
from skillhall._internal.prompts.prompt_model import SourceStatus, Stale
from skillhall._internal.prompts.refreshing_source import PATIENCE, Feed, words
from skillhall._internal.prompts.repo_source import Repository
from skillhall._internal.sources.folder.candidate import reason
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
    from skillhall._internal.prompts.checkout import Copies
    from skillhall._internal.prompts.prompt_model import Asked, Followed
    from skillhall._internal.prompts.prompt_snapshot import Contents
    from skillhall._internal.prompts.refreshing_source import Looked
    from skillhall._internal.prompts.service import Supply

    Discard: TypeAlias = Callable[[Iterable[str]], None]  # what git's own copies are kept under

_ANSWERS = 0  # bytes of answers that are kept: its prompts are not handed out
_AT_ONCE = 4  # looks; each may take git's whole time
_SHORTEST_PAUSE = 1.0  # seconds
_THREAD = "skillhall-followed"


class Stock(NamedTuple):
    """The skills of several sources, in order, for as long as they can be read."""

    contents: tuple[Contents, ...]
    digest: str  # changes with any of them
    skills: tuple[Skill, ...]

    @classmethod
    def of(cls, contents: tuple[Contents, ...]) -> Stock:
        """All skills of all contents."""
        digests = [one.digest for one in contents]
        digest = hashlib.sha256("".join(digests).encode()).hexdigest()
        skills = tuple(skill for one in contents for skill in one.skills)
        return cls(contents, digest if digests[1:] else digests[0], skills)


@dataclass(frozen=True, slots=True)
class _Source:
    """One that is followed, and what was read of it."""

    followed: Followed
    feed: Feed

    @property
    def is_due(self) -> bool:
        """Whether it is time to look, or what was read is gone."""
        return not self.feed.seconds_left or self.is_lost

    @property
    def is_lost(self) -> bool:
        """Whether there is nothing to give, and no look has told why."""
        return self.feed.kept is None and not self.feed.failure

    def status(self) -> SourceStatus:
        """How it stands."""
        kept, feed = self.feed.kept, self.feed
        name = name_of(self.followed)
        if kept is None:
            stale = Stale(feed.failure, "") if feed.failure else None
            return SourceStatus(name, "", 0, stale, feed.checked, self.followed, "followed")
        number = len(kept.contents.skills)
        status = SourceStatus(name, kept.commit, number, kept.stale, feed.checked, self.followed)
        return status._replace(role="followed", skipped=kept.skipped)


class Following:
    """The verbs on what is followed; thread-safe. Requests never wait for a look but their own."""

    def __init__(self, supply: Supply, copies: Copies, discard: Discard, *, watch: bool) -> None:
        """`discard` removes those of git's own copies that nothing else is read from."""
        self._discard = discard
        self._supply = supply
        self._copies = copies
        self._list = FollowedList(supply.data_directory)
        self._changing = threading.Lock()  # the list and the sources, together
        self._gate = threading.Lock()
        self._hands = threading.BoundedSemaphore(_AT_ONCE)
        self._sources: dict[Followed, _Source] = {}
        self._problem: SkillhallError | None = None if supply.can_follow else FollowingOff()
        self._read_list()
        is_watched = watch and supply.can_follow
        self._watch = Watch(self._look_around, self._pause, _THREAD) if is_watched else None

    @property
    def problem(self) -> SkillhallError | None:
        """Why nothing can be added or removed; None if it can."""
        return self._problem

    def follow(self, asked: Asked) -> SourceStatus:
        """Read a repository, then keep it. Raises: as `Counter.follow`."""
        followed = self._checked(asked)
        try:
            source = self._read(followed)
            with self._changing:
                self._take(self._list.add(followed), source)
        except (SkillhallError, OSError):
            self._discard(self._copy_keys([followed]))
            raise
        self._wake()
        return source.status()

    def unfollow(self, key: str) -> Followed:
        """Keep one no longer. Raises: as `Counter.unfollow`."""
        self._refuse()
        with self._changing:
            removed, those = self._list.remove(key)
            self._take(those)
        self._discard(self._copy_keys([removed]))
        return removed

    def refresh(self) -> None:
        """Look at all of them now."""
        self._read_list()
        self._look_at(self._all())

    def contents(self) -> tuple[Contents, ...]:
        """What was read of each, in the order they were added."""
        sources = self._all()
        if any(source.is_lost for source in sources):
            self._wake()
        kept = [source.feed.kept for source in sources]
        return tuple(snapshot.contents for snapshot in kept if snapshot is not None)

    def status(self) -> list[SourceStatus]:
        """How each of them stands."""
        return [source.status() for source in self._all()]

    def expire(self, urls: Sequence[str], branch: str) -> bool:
        """Note that a repository has news; whether it is followed."""
        ours = [
            source
            for source in self._all()
            if any(one.is_pushed(urls, branch) for one in self._repositories([source.followed]))
        ]
        for source in ours:
            source.feed.expire()
        if ours:
            self._wake()
        return bool(ours)

    def copy_keys(self) -> set[str]:
        """What git's own copies of them are kept under."""
        return self._copy_keys(source.followed for source in self._all())

    def close(self) -> None:
        """Stop looking."""
        if self._watch is not None:
            self._watch.close()

    def _checked(self, asked: Asked) -> Followed:
        """What is to be followed, unless that is clear to fail before anything is read."""
        self._refuse()
        followed = checked_followed(asked, self._supply.hosts)
        refuse_more(followed, self._list.read())
        configured = self._supply.configured
        if isinstance(configured, Repository):
            wanted = repository_of(followed, self._supply.hosts).reference
            if wanted == configured.reference:
                raise Conflict(name_of(followed), "it is the one in the settings")
        return followed

    def _refuse(self) -> None:
        if not self._supply.can_follow:
            raise FollowingOff

    def _feed(self) -> Feed:
        # Nobody waits for these looks, so nothing is gained by one for every request.
        return Feed(max(self._supply.ttl, PATIENCE), self._supply.clock)

    def _copy_keys(self, those: Iterable[Followed]) -> set[str]:
        found = self._repositories(those)
        return {one.copy_key(self._supply.access_to(one)) for one in found}

    def _read(self, followed: Followed) -> _Source:
        """One that has skills. Raises: SourceRejected, PromptsSourceError, NoSkillThere."""
        source = _Source(followed, self._feed())
        try:
            snapshot = source.feed.refresh(self._look(followed))
        except SourceRejected:
            raise
        except (SkillhallError, OSError) as error:
            hint = error.hint if isinstance(error, SkillhallError) else ""
            raise PromptsSourceError(name_of(followed), words(error), hint) from None
        if not snapshot.contents.skills:
            hint = "name the folder in which the folders with a SKILL.md are"
            raise NoSkillThere(name_of(followed), hint)
        return source

    def _look(self, followed: Followed) -> Callable[[Contents | None], Looked]:
        def look(kept: Contents | None) -> Looked:
            # What the operator allows may have changed since it was added.
            # Its name says the folder and the branch too: one repository can be followed twice.
            found = repository_of(followed, self._supply.hosts)
            repository = replace(found, source=name_of(followed))
            reader = self._supply.reader(self._supply.access_to(repository))
            return repository.look(kept, reader, self._copies, _ANSWERS)

        return look

    def _take(self, those: Iterable[Followed], *read: _Source) -> None:
        """Have a source for each of these, in this order, and for no other."""
        with self._gate:
            known = {**self._sources, **{source.followed: source for source in read}}
            self._sources = {one: known.get(one) or _Source(one, self._feed()) for one in those}
        self._problem = None

    def _read_list(self) -> None:
        """What the file says; while it cannot be read, what it said before."""
        if not self._supply.can_follow:
            return
        try:
            with self._changing:
                self._take(self._list.read())
        except SkillhallError as error:
            self._problem = error
        except OSError as error:
            self._problem = ConfigInvalid(FILE, reason(error))

    def _all(self) -> list[_Source]:
        with self._gate:
            return [*self._sources.values()]

    def _repositories(self, those: Iterable[Followed]) -> list[Repository]:
        """Those that may be looked at."""
        found = []
        for one in those:
            with contextlib.suppress(SourceRejected):
                found.append(repository_of(one, self._supply.hosts))
        return found

    def _wake(self) -> None:
        if self._watch is not None:
            self._watch.wake()

    def _look_around(self) -> None:
        """A look at those whose time is over, by the watch."""
        self._read_list()
        self._look_at([source for source in self._all() if source.is_due])

    def _look_at(self, sources: Sequence[_Source]) -> None:
        """Look at several; a few slow ones keep no other waiting."""
        threads = [
            threading.Thread(target=self._refresh, args=[one], daemon=True) for one in sources
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _refresh(self, source: _Source) -> None:
        # What goes wrong is noted in the feed.
        with self._hands, contextlib.suppress(Exception):
            source.feed.refresh(self._look(source.followed))

    def _pause(self) -> float | None:
        """Until the next one is due."""
        left = [source.feed.seconds_left for source in self._all()]
        return max(min(left), _SHORTEST_PAUSE) if left else None
