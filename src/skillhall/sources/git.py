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
from skillhall.sources.commit_tree import (
    draft_level,
    draft_skills,
    files_of,
    level_of,
    searchable_paths,
)
from skillhall.sources.git_cache import file_name, is_cached, opened_cache
from skillhall.sources.git_failures import GitFailed, Trouble, explained
from skillhall.sources.git_program import has_git
from skillhall.sources.git_remote import (
    Endpoint,
    GitAccess,
    GitLimits,
    Remote,
    cache_key,
    follow_redirect,
    open_remote,
    parse_endpoint,
)
from skillhall.sources.git_store import Damaged, Store
from skillhall.sources.reference import GitHubRef, GitRef, is_commit, is_ref
from skillhall.sources.repository import Snapshot, Tree, find_skills

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillhall.policy.scanning import ScanPolicy
    from skillhall.skill.finding import Finding
    from skillhall.sources.commit_tree import Draft, Entry
    from skillhall.sources.git_cache import Cache, Seen

    # What of a commit's tree is wanted at a path, and what was noticed on the way.
    Choice = Callable[[list[Entry], str], tuple[list[Draft], list[Finding]]]

T = TypeVar("T")

__all__ = [
    "GitAccess",
    "GitLimits",
    "as_git",
    "has_git",
    "read_git",
    "read_git_level",
    "resolve_commit",
]

_NOWHERE = "/nonexistent"  # for a question that needs no repository of ours
_LONG = 64  # hexadecimal digits of an id by SHA-256


def read_git(reference: GitRef, access: GitAccess, *, text: str) -> Snapshot:
    """The skills at a place in a repository, of the commit that its ref has now.

    When the host cannot be asked, they are those of the last time, and marked. `text` names the
    source. Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, TooLarge,
    NoSkillThere, SkillNotFound; OSError if the cache cannot be written.
    """

    def choose(entries: list[Entry], path: str) -> tuple[list[Draft], list[Finding]]:
        return draft_skills(entries, find_skills(searchable_paths(entries), path, text)), []

    found = _found(reference, _Line(_checked(reference), access, text), choose)
    bundles = tuple(draft.bundle(found.contents) for draft in found.drafts)
    return Snapshot(bundles, found.commit, found.ref, found.stale)


def read_git_level(reference: GitRef, access: GitAccess, policy: ScanPolicy, *, text: str) -> Tree:
    """What a scan of the one level below the reference's path looks at, of the ref's commit.

    Raises: as `read_git`, but for skills that are missing.
    """

    def choose(entries: list[Entry], path: str) -> tuple[list[Draft], list[Finding]]:
        return draft_level(entries, path, policy, text)

    found = _found(reference, _Line(_checked(reference), access, text), choose)
    files, findings = level_of(found.drafts, found.contents)
    return Tree(files, found.commit, (*found.findings, *findings), found.stale, found.seen)


def as_git(reference: GitHubRef | GitRef, github_url: str) -> GitRef:
    """The reference for git; `github_url` is where repositories of GitHub are."""
    if isinstance(reference, GitRef):
        return reference
    place = f"{github_url}/{reference.owner}/{reference.repository}.git"
    return GitRef(place, reference.path, reference.ref)


class _Found(NamedTuple):
    """What was wanted of a commit, with the files' bytes by id."""

    drafts: list[Draft]
    findings: list[Finding]
    contents: Mapping[str, bytes]
    commit: str
    ref: str  # the one of the readings that it was
    seen: float  # when the ref had this commit, in seconds since 1970
    stale: str = ""


def _found(reference: GitRef, line: _Line, choose: Choice) -> _Found:
    access = line.access
    key, base = cache_key(line.endpoint, access), access.cache_directory
    if not (is_commit(reference.ref) and is_cached(base, key)):
        line.refuse_early()
    asked = time.time()
    try:
        with opened_cache(base, key, line.until) as cache:
            return _Reading(reference, line, cache, asked, choose).found()
    except TimeoutError:
        raise SourceTimedOut(
            line.endpoint.authority, "others are reading it for too long"
        ) from None


def resolve_commit(reference: GitRef, access: GitAccess) -> str:
    """The commit that the ref has now; nothing is kept.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited.
    """
    line = _Line(_checked(reference), access, reference.text)
    if is_commit(reference.ref):
        return reference.ref
    store = line.store(_NOWHERE)
    try:
        for reading in reference.readings():
            found = line.ask(partial(store.ask_for, ref=reading.ref))
            if found is not None:
                return found
    except GitFailed as failure:
        raise line.explained(failure) from None
    raise SourceNotFound(reference.text)


def _checked(reference: GitRef) -> Endpoint:
    """The repository's URL, if it and the ref are what they seem. Raises: SourceRejected."""
    if reference.ref and not is_ref(reference.ref):
        raise SourceRejected("ref", reference.text, "git has no such names for refs")
    return parse_endpoint(reference.url)


class _Line:
    """The way to one repository, and the time that is left; looked up when it is first needed."""

    def __init__(self, endpoint: Endpoint, access: GitAccess, text: str) -> None:
        self.endpoint = endpoint
        self.access = access
        self.text = text
        self.until = time.monotonic() + access.limits.overall
        self._remote: Remote | None = None
        self._failure: SourceUnavailable | None = None

    def refuse_early(self) -> None:
        """Refuse hosts that we do not call, before anything is made. Raises: SourceRejected."""
        try:
            self._remote = open_remote(self.endpoint, self.access, self.until)
        except SourceUnavailable as error:
            self._failure = error  # an older copy may do

    def store(self, folder: str, lock: int | None = None) -> Store:
        """A repository on our disk that is filled over this line, and the lock on it."""
        size, progress = self.access.limits.size, self.access.progress
        return Store(folder, self.endpoint.authority, self.text, self.until, size, progress, lock)

    def ask(self, question: Callable[[Remote], T]) -> T:
        """What the repository answers, at its new place if it has moved.

        Raises: GitFailed, and as `read_git` does.
        """
        remote = self._open()
        try:
            return question(remote)
        except GitFailed as failure:
            if failure.trouble is not Trouble.MOVED:
                raise
        self._remote = self._moved(remote)
        return question(self._remote)

    def explained(self, failure: GitFailed) -> SkillhallError:
        """The error for a question that failed."""
        return explained(failure, self._open(), self.text)

    def _open(self) -> Remote:
        if self._failure is not None:
            raise self._failure
        if self._remote is None:
            self._remote = open_remote(self.endpoint, self.access, self.until)
        return self._remote

    def _moved(self, remote: Remote) -> Remote:
        try:
            return follow_redirect(remote, self.access, self.until)
        except (SourceNotFound, TooLarge):  # without a token, private ones are not seen
            raise explained(GitFailed("returned error: 301"), remote, self.text) from None


@dataclass(frozen=True, slots=True)
class _Reading:
    """One reading of a repository, with its copy locked."""

    reference: GitRef
    line: _Line
    cache: Cache
    asked: float  # seconds since 1970
    choose: Choice

    def found(self) -> _Found:
        """The skills. Raises: as `read_git` does."""
        pinned = self._pinned()
        if pinned is not None:
            return pinned
        try:
            return self._current()
        except (SourceUnavailable, RateLimited) as error:
            older = self._older(error)
            if older is None:
                raise
            return older

    def _pinned(self) -> _Found | None:
        """The skills of a commit that never changes, if it is here."""
        ref = self.reference.ref
        if not is_commit(ref) or self.cache.seen(ref) is None:
            return None
        try:
            return self._read(self.reference, ref)
        except (Damaged, GitFailed):
            return None

    def _current(self) -> _Found:
        """The skills of today."""
        for reading in self.reference.readings():
            try:
                return self._of(reading)
            except GitFailed as failure:
                if failure.trouble is not Trouble.NO_REF:
                    raise self.line.explained(failure) from None
                self.cache.forget(reading.ref)
        raise SourceNotFound(self.line.text)

    def _of(self, reading: GitRef) -> _Found:
        commit = self._commit(reading.ref)
        try:
            found = self._read(reading, commit)
        except Damaged:
            found = self._read_again(reading)
        except (NoSkillThere, SkillNotFound, SourceNotFound, SourceRejected):
            self.cache.note(reading.ref, commit)
            raise
        for known in {reading.ref, found.commit}:  # a lock asks for the commit itself
            self.cache.note(known, found.commit)
        return found

    def _read_again(self, reading: GitRef) -> _Found:
        """The skills out of a new copy; the old one is damaged."""
        try:
            return self._read(reading, self._afresh(reading.ref))
        except Damaged:
            host = self.line.endpoint.authority
            raise SourceUnavailable(host, "what it sends is not whole") from None

    def _commit(self, ref: str) -> str:
        """The commit of a ref, fetched."""
        seen = self.cache.seen(ref)
        if seen is not None and self.asked <= seen.when <= time.time() and self.cache.exists:
            return seen.commit  # somebody else asked while we waited for them
        store = self.line.store(self.cache.repository, self.cache.lock)
        if not self.cache.exists or store.size() > self.line.access.limits.size:
            return self._afresh(ref)
        try:
            return self.line.ask(partial(store.fetch, ref=ref, name=file_name(ref)))
        except Damaged:
            return self._afresh(ref)
        except GitFailed as failure:
            if failure.trouble not in (Trouble.UNKNOWN, Trouble.OTHER_FORMAT):
                raise
        return self._afresh(ref)  # whether our copy or the host is at fault shows there

    def _afresh(self, ref: str) -> str:
        """The commit of a ref, fetched into a copy that is new."""
        with self.cache.renewed() as folder:
            store = self.line.store(folder, self.cache.lock)
            question = partial(store.fetch, ref=ref, name=file_name(ref))
            store.make(is_long=is_commit(ref) and len(ref) == _LONG)
            try:
                return self.line.ask(question)
            except GitFailed as failure:
                if failure.trouble is not Trouble.OTHER_FORMAT:
                    raise
            store.make(is_long=True)
            return self.line.ask(question)

    def _older(self, error: SkillhallError) -> _Found | None:
        """The skills of the last time, if they are still here."""
        for reading in self.reference.readings():
            seen = self.cache.seen(reading.ref)
            if seen is None:
                continue
            try:
                found = self._read(reading, seen.commit)
            except (Damaged, GitFailed, SourceUnavailable, RateLimited):
                return None
            return found._replace(stale=_why(error, seen), seen=seen.when)
        return None

    def _read(self, reading: GitRef, commit: str) -> _Found:
        """The skills of a commit. Raises: Damaged, GitFailed, and as `read_git` does."""
        store = self.line.store(self.cache.repository, self.cache.lock)
        entries = store.tree(commit)
        drafts, findings = self.choose(entries, reading.path)
        sizes = self._sizes(store, reading.ref, {entry.id for entry in files_of(drafts)})
        for draft in drafts:
            draft.weigh(sizes)
        limit = self.line.access.limits.size
        # A file that is there often comes once, and is written as often as it is there.
        if sum(sizes[entry.id] for entry in files_of(drafts)) > limit:
            raise TooLarge(self.line.text, limit)
        contents = store.contents({entry.id: sizes[entry.id] for entry in files_of(drafts)})
        return _Found(drafts, findings, contents, commit, reading.ref, time.time())

    def _sizes(self, store: Store, ref: str, ids: set[str]) -> dict[str, int]:
        """The sizes of files, which are fetched if they are not here."""
        missing = ids - store.sizes(ids).keys()
        if missing:
            try:
                self.line.ask(partial(store.fill, ids=missing))
            except GitFailed as failure:
                if failure.trouble not in (Trouble.BY_NAME_ONLY, Trouble.NO_REF):
                    raise
                self.line.ask(partial(store.fetch_whole, ref=ref, name=file_name(ref)))
        sizes = store.sizes(ids)
        if ids - sizes.keys():
            raise Damaged
        return sizes


def _why(error: SkillhallError, seen: Seen) -> str:
    when = datetime.fromtimestamp(seen.when, UTC)
    return f"{error}; this copy is of {when:%Y-%m-%d %H:%M} UTC"
