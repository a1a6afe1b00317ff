"""The counter: which source a call is about, and what is handed out from it."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from skillhall._internal.background import Watch
from skillhall._internal.catalog.skip_log import log_skipped
from skillhall._internal.prompts.checkout import Copies
from skillhall._internal.prompts.followed_repos import Following, Stock
from skillhall._internal.prompts.prompt_model import BUILT_IN, Asked, SourceStatus, Stale
from skillhall._internal.prompts.prompt_snapshot import ANSWERS, Contents, Snapshot
from skillhall._internal.prompts.refreshing_source import Clock, Feed, Looked, words
from skillhall._internal.prompts.repo_reader import GitHubReader, GitReader
from skillhall._internal.prompts.repo_source import (
    GitHosts,
    LocalFolder,
    Repository,
    asked_repository,
)
from skillhall._internal.prompts.uploads.folder_uploads import MAX_SOURCES, FolderUploads
from skillhall._internal.prompts.uploads.rules import stored_name
from skillhall._internal.sources.git.clone_cache import discard_copy
from skillhall._internal.sources.git.token_scope import TokenScope
from skillhall.errors import PromptsSourceError, SkillhallError, SourceRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillhall._internal.prompts.prompt_model import Followed, Ingested, Role, Upload
    from skillhall._internal.prompts.refreshing_source import Look
    from skillhall._internal.prompts.repo_reader import Reader
    from skillhall._internal.prompts.uploads.folder_uploads import Uploads
    from skillhall._internal.sources.git.source import GitAccess
    from skillhall._internal.sources.github.client import GitHubAccess

    Call: TypeAlias = Callable[[Feed, Look], Snapshot]
    Announce: TypeAlias = Callable[[Sequence[str], str], None]  # its addresses, and the branch

_CONFIGURED = Asked()
MAX_OVERRIDES = 32  # repositories that calls asked for and that are kept
_OVERRIDE_ANSWERS = 8 * 1024 * 1024  # bytes of answers that are kept of each of them
_SHORTEST_PAUSE = 1.0  # seconds
_THREAD = "skillhall-prompts"


@dataclass(frozen=True, slots=True)
class Supply:
    """Where prompts come from, and how it is reached."""

    access: GitAccess  # for the operator's repositories
    data_directory: str
    hosts: GitHosts
    configured: Repository | LocalFolder | None = None
    ttl: float = 86400.0  # seconds
    overrides: int = MAX_OVERRIDES
    clock: Clock = field(default_factory=Clock)
    # The repositories that the operator's tokens are for.
    scope: TokenScope = field(default_factory=TokenScope)
    github: GitHubAccess | None = None  # instead of git, if that is not to be used
    uploads: Uploads | None = None  # folders in the data directory, if it is not given
    announce: Announce = lambda *_: None  # tells other servers which repository has news
    can_follow: bool = True  # whether people may add repositories, in a list of this server's own

    def access_to(self, repository: Repository) -> GitAccess:
        """The access to a repository that anybody named: tokens go to the operator's alone."""
        url, configured = repository.reference.url, self.configured
        is_configured = isinstance(configured, Repository) and url == configured.reference.url
        if is_configured or self.scope.includes(url):
            return self.access
        return self.access.without_credentials()

    def reader(self, access: GitAccess) -> Reader:
        """The way to a repository, with the tokens of an access."""
        if self.github is None:
            return GitReader(access)
        github = self.github
        if access is not self.access:  # a call's own token, which its repository's host may see
            token = next(iter(access.tokens.values()), None)
            github = replace(github, tokens={github.authority: token} if token else {})
        return GitHubReader(github, self.hosts.github_url)


class PromptCounter:
    """The verbs of a prompt server, over the built-in prompts and one supply; thread-safe."""

    def __init__(self, supply: Supply, *, watch: bool = False) -> None:
        self._supply = supply
        self._copies = Copies(supply.access.cache_directory)
        self._uploads = supply.uploads or FolderUploads(supply.data_directory)
        self._built_in = Contents(BUILT_IN)
        self._configured = Feed(supply.ttl, supply.clock, rests=True)
        self._gate = threading.Lock()
        self._overrides: OrderedDict[tuple[str, ...], tuple[Repository, Feed]] = OrderedDict()
        self._uploaded: OrderedDict[str, tuple[str, Snapshot]] = OrderedDict()
        is_watched = watch and supply.configured is not None
        self._watch = Watch(self._look_around, self._pause, _THREAD) if is_watched else None
        self._following = Following(supply, self._copies, self._discard, watch=watch)
        self._stock: Stock | None = None

    def snapshot(self, asked: Asked = _CONFIGURED) -> Snapshot:
        """What is handed out now; read at the first call, and again when its time is over.

        Raises: PromptsSourceError, SourceUnknown, SourceRejected.
        """
        return self._answer(asked, Feed.snapshot)

    def current(self, asked: Asked = _CONFIGURED) -> Snapshot | None:
        """What is handed out now, if nothing must be read for it."""
        if asked != _CONFIGURED:
            return None
        if self._supply.configured is None:
            return Snapshot(self._built_in)
        return self._configured.kept if self._configured.seconds_left else None

    def refresh(self, asked: Asked = _CONFIGURED) -> Snapshot:
        """The newest, now; other servers are told to look too. Raises: as `snapshot`."""
        snapshot = self._answer(asked, Feed.refresh)
        repository = self._asked_repository(asked)
        if repository is not None:
            self._supply.announce([repository.address], repository.reference.ref)
        return snapshot

    def ingest(self, upload: Upload) -> Ingested:
        """Keep an upload under its name. Raises: UploadRejected, TooLarge, OSError."""
        return self._uploads.ingest(upload)

    def pushed(self, urls: Sequence[str], branch: str) -> bool:
        """Note that a repository has news; whether it is one of ours. It is refreshed soon."""
        is_ours = self.expire(urls, branch)
        self._supply.announce(urls, branch)
        return is_ours

    def expire(self, urls: Sequence[str], branch: str) -> bool:
        """The same, told by another server, which has told everybody."""
        with self._gate:
            known = list(self._overrides.values())
        configured = self._supply.configured
        if isinstance(configured, Repository):
            known.append((configured, self._configured))
        ours = [feed for repository, feed in known if repository.is_pushed(urls, branch)]
        for feed in ours:
            feed.expire()
        if self._watch is not None and self._configured in ours:
            self._watch.wake()
        return self._following.expire(urls, branch) or bool(ours)

    def status(self) -> Sequence[SourceStatus]:
        """Every source that is in use, the configured one first, then those that are followed."""
        with self._gate:
            others = list(self._overrides.values())
            uploaded = [snapshot for _, snapshot in self._uploaded.values()]
        found = [self._configured_status(), *self._following.status()]
        for _, feed in others:
            if (kept := feed.kept) is not None:
                found.append(_status(kept, feed.checked, "override"))
        return [*found, *(_status(snapshot, "", "upload") for snapshot in uploaded)]

    def skills(self) -> Stock:
        """The skills of the configured source, then of those that are followed."""
        configured = self.current() or self.snapshot()
        contents = (configured.contents, *self._following.contents())
        with self._gate:
            if self._stock is None or self._stock.contents != contents:
                self._stock = Stock.of(contents)
            return self._stock

    def follow(self, asked: Asked) -> SourceStatus:
        """Read a repository, and give its skills from now on. Raises: as `Counter.follow`."""
        return self._following.follow(asked)

    def unfollow(self, key: str) -> Followed:
        """Give the skills of a repository no longer. Raises: as `Counter.unfollow`."""
        return self._following.unfollow(key)

    def refresh_followed(self) -> None:
        """Look at all that are followed, now; how it went, `status` says."""
        self._following.refresh()

    @property
    def why_not_followed(self) -> SkillhallError | None:
        """Why no repository can be followed; None if they can."""
        return self._following.problem

    def close(self) -> None:
        """Stop looking, and remove what was only kept for this process."""
        self._following.close()
        if self._watch is not None:
            self._watch.close()
        self._copies.close()

    def _answer(self, asked: Asked, call: Call) -> Snapshot:
        names_place = bool(asked.repo or asked.path or asked.branch)
        if asked.source:
            if names_place:
                problem = "an uploaded source has no repository, path or branch"
                raise SourceRejected("url", asked.source, problem, "ask for one or the other")
            return self._from_upload(asked.source)
        has_own_token = asked.token and isinstance(self._supply.configured, Repository)
        if names_place or has_own_token:
            return self._from_override(asked, call)
        return self._from_configured(call)

    def _from_configured(self, call: Call) -> Snapshot:
        """The configured prompts; without them the built-in ones, and why."""
        if self._supply.configured is None:
            return Snapshot(self._built_in)
        try:
            return call(self._configured, self._look)
        except (SkillhallError, OSError) as error:
            return Snapshot(self._built_in, self._why(words(error)))

    def _from_override(self, asked: Asked, call: Call) -> Snapshot:
        repository, access = self._override(asked)
        key, reader = repository.key(access), self._supply.reader(access)
        feed = self._feed(key, repository)

        def look(kept: Contents | None) -> Looked:
            return repository.look(kept, reader, self._copies, _OVERRIDE_ANSWERS)

        try:
            return call(feed, look)
        except SourceRejected:
            self._drop(key, feed)
            raise
        except (SkillhallError, OSError) as error:
            self._drop(key, feed)
            hint = error.hint if isinstance(error, SkillhallError) else ""
            raise PromptsSourceError(repository.source, words(error), hint) from None

    def _override(self, asked: Asked) -> tuple[Repository, GitAccess]:
        """The repository that a call is about, and how it may be reached."""
        repository = self._asked_repository(asked)
        if repository is None:
            text, hint = asked.path or asked.branch, "name the repository too"
            raise SourceRejected("path", text, "no repository is configured", hint)
        return repository, repository.access(self._supply.access_to(repository), asked.token)

    def _asked_repository(self, asked: Asked) -> Repository | None:
        """The repository that a call is about; none for uploads and folders."""
        if asked.source:
            return None
        if asked.repo:
            return asked_repository(asked.repo, asked.path, asked.branch, self._supply.hosts)
        configured = self._supply.configured
        if not isinstance(configured, Repository):
            return None
        return configured.at(asked.path, asked.branch)

    def _feed(self, key: tuple[str, ...], repository: Repository) -> Feed:
        """The feed of an override, which is now the last one that would go."""
        with self._gate:
            if key not in self._overrides:
                feed = Feed(self._supply.ttl, self._supply.clock)
                self._overrides[key] = repository, feed
            self._overrides.move_to_end(key)
            feed = self._overrides[key][1]
            too_many = len(self._overrides) - self._supply.overrides
            lost = [self._overrides.popitem(last=False)[0] for _ in range(max(too_many, 0))]
        if lost:
            self._discard({one[0] for one in lost})
        return feed

    def _discard(self, copies: Iterable[str]) -> None:
        """Remove git's own copies that nothing is read from any more."""
        with self._gate:
            used = {kept[0] for kept in self._overrides}
        configured = self._supply.configured
        if isinstance(configured, Repository):
            used.add(configured.copy_key(self._supply.access))
        for copy in {*copies} - used - self._following.copy_keys():
            discard_copy(self._supply.access.cache_directory, copy)

    def _drop(self, key: tuple[str, ...], feed: Feed) -> None:
        """Forget an override that was never read: it must not push others out."""
        with self._gate:
            if feed.kept is None and self._overrides.get(key, (None, None))[1] is feed:
                del self._overrides[key]

    def _from_upload(self, asked_for: str) -> Snapshot:
        source = stored_name(asked_for)
        version = self._uploads.version(source)
        with self._gate:
            known = self._uploaded.get(source)
        if known is not None and known[0] == version and known[1].contents.is_whole:
            return known[1]
        try:
            version, tree = self._uploads.read(source)
            copy = self._copies.put(tree)
        except OSError as error:
            raise PromptsSourceError(source, words(error)) from None
        contents = Contents(source, copy, notes=tree.findings, answers=_OVERRIDE_ANSWERS)
        if known is None or known[0] != version:
            log_skipped(contents.place, contents.skipped)
        with self._gate:
            self._uploaded[source] = version, Snapshot(contents)
            self._uploaded.move_to_end(source)
            while len(self._uploaded) > MAX_SOURCES:
                self._uploaded.popitem(last=False)
        return Snapshot(contents)

    def _look(self, kept: Contents | None) -> Looked:
        """A look at the configured source."""
        configured = self._supply.configured
        if isinstance(configured, Repository):
            reader = self._supply.reader(self._supply.access)
            return configured.look(kept, reader, self._copies, ANSWERS)
        if configured is None:
            return Looked(self._built_in)
        return configured.look(kept, self._copies)

    def _look_around(self) -> None:
        """A look at the configured source if it is time, by the watch."""
        if not self._configured.seconds_left:
            # What goes wrong is noted; whatever else it is, the next caller meets it too.
            with contextlib.suppress(Exception):
                self._configured.refresh(self._look)

    def _pause(self) -> float | None:
        """Until the watch looks again; callers look themselves if it is every time."""
        return max(self._configured.seconds_left, _SHORTEST_PAUSE) if self._supply.ttl else None

    def _configured_status(self) -> SourceStatus:
        feed, configured = self._configured, self._supply.configured
        if feed.kept is not None or configured is None:
            return _status(feed.kept or Snapshot(self._built_in), feed.checked)
        why = self._why(feed.failure) if feed.failure else None
        return SourceStatus(configured.source, "", len(self._built_in.names), why, feed.checked)

    def _why(self, problem: str) -> Stale:
        source = "" if self._supply.configured is None else self._supply.configured.source
        return Stale(str(PromptsSourceError(source, problem)), "")


def _status(snapshot: Snapshot, checked: str, role: Role = "configured") -> SourceStatus:
    return SourceStatus(
        snapshot.source,
        snapshot.commit,
        len(snapshot.names),
        snapshot.stale,
        checked,
        role=role,
        skipped=snapshot.skipped,
    )
