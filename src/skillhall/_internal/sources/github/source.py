"""Skills in a repository on GitHub, without git: by its API and its archives.

What a commit holds is told by its tree, and every file must have the hash that the tree gives it.
Nothing of the archive's own names, modes or sizes is believed.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from skillhall._internal.net.fetch import Request
from skillhall._internal.sources.archive.source import LIMITS
from skillhall._internal.sources.commit_tree import (
    EXECUTABLE,
    LINK,
    PLAIN,
    Entry,
    draft_level,
    draft_skills,
    files_of,
    level_of,
    searchable_paths,
)
from skillhall._internal.sources.github.client import Api
from skillhall._internal.sources.github.response_cache import GitHubCache
from skillhall._internal.sources.github.tree import (
    blob_hash,
    dump_tree,
    is_blob,
    load_tree,
    parse_tree,
)
from skillhall._internal.sources.ref import is_commit
from skillhall._internal.sources.repo_layout import Snapshot, Tree, find_skills
from skillhall.errors import RateLimited, SourceNotFound, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.policy.scan_rules import ScanPolicy
    from skillhall._internal.sources.archive.tar_format import Member
    from skillhall._internal.sources.commit_tree import Draft
    from skillhall._internal.sources.github.client import GitHubAccess
    from skillhall._internal.sources.ref import GitHubRef

_MIB = 1024 * 1024
_MAX_TREE = 50 * _MIB  # bytes of JSON; GitHub itself cuts trees at 7 MiB
_MAX_LEVEL = 500 * _MIB  # bytes of the files of one level, as by git
_FEW = 8  # files that are asked for one by one
# Repositories can keep files out of archives, or have them changed there (.gitattributes).
_MAX_MISSING = 32  # files that an archive may lack
_AT_ONCE = 4  # requests
_SHA = "application/vnd.github.sha"
_JSON = "application/vnd.github+json"
_RAW = "application/vnd.github.raw+json"
_SERVER_FAULT = 500


def read_github(reference: GitHubRef, access: GitHubAccess, *, text: str) -> Snapshot:
    """The skills that the reference names; `text` is how the person wrote it.

    An older copy is given if GitHub does not answer, or asks to wait: see `Snapshot.stale`.
    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, NoSkillThere,
    SkillNotFound, ArchiveRejected, TooLarge.
    """
    reader = _opened(reference, access, text)
    try:
        commit, reading = reader.locate()
        snapshot = reader.snapshot(commit, reading)
    except (SourceUnavailable, RateLimited) as error:
        if not _passes(error):
            raise
        return reader.last_snapshot(error)
    reader.remember(commit, reading.path)
    return snapshot


def read_github_level(
    reference: GitHubRef, access: GitHubAccess, policy: ScanPolicy, *, text: str
) -> Tree:
    """What a scan of the one level below the reference's path looks at, of the ref's commit.

    Raises: as `read_github`, but for skills that are missing.
    """
    reader = _opened(reference, access, text)
    try:
        commit, reading = reader.locate()
        tree = reader.level(commit, reading, policy)
    except (SourceUnavailable, RateLimited) as error:
        if not _passes(error):
            raise
        return reader.last_level(error, policy)
    reader.remember(commit, reading.path)
    return tree


def resolve_github(reference: GitHubRef, access: GitHubAccess) -> str:
    """The commit that the ref has now.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, NoSkillThere.
    """
    return _opened(reference, access, reference.text).locate()[0]


def _opened(reference: GitHubRef, access: GitHubAccess, text: str) -> _Reader:
    name = f"{reference.owner}/{reference.repository}"
    cache = GitHubCache(access.cache_directory, access.api_url, access.token)
    return _Reader(reference, Api(access, name, text), cache)


def _passes(error: SourceUnavailable | RateLimited) -> bool:
    """Whether it is a fault of the moment. A refusal is not: what was shown may be closed now."""
    status = 0 if isinstance(error, RateLimited) else error.status
    return status == 0 or status >= _SERVER_FAULT


@dataclass(frozen=True, slots=True)
class _Reader:
    """One repository, for as long as it is read."""

    reference: GitHubRef
    api: Api
    cache: GitHubCache

    # Commits

    def locate(self) -> tuple[str, GitHubRef]:
        """The commit, and what the reference means; the branch of a page may have slashes."""
        for reading in self.reference.readings():
            try:
                return self._commit(reading.ref), reading
            except SourceNotFound:
                continue
        raise self.api.not_found(self.reference.ref)

    def _commit(self, ref: str) -> str:
        if is_commit(ref):
            return ref
        kept = _loaded(self.cache.read("ref", self.api.name, ref), "etag", "commit")
        etag, known = kept or ("", "")
        target = f"commits/{quote(ref or 'HEAD')}"
        answer = self.api.ask(target, Request(etag, accept=_SHA), _MIB, ref=ref)
        commit = known if answer.unchanged else answer.data.decode("ascii", "replace").strip()
        if not is_commit(commit):
            raise self.api.unreadable()
        if answer.etag and not answer.unchanged:
            self._keep("ref", self.api.name, ref, etag=answer.etag, commit=commit)
        return commit

    # Trees

    def _tree(self, commit: str) -> Sequence[Entry]:
        kept = self.cache.read("tree", self.api.name, commit)
        if kept is not None:
            try:
                return load_tree(kept)
            except (ValueError, TypeError):
                pass  # as good as not kept
        target = f"git/trees/{commit}?recursive=1"
        answer = self.api.ask(target, Request(accept=_JSON), _MAX_TREE, ref=commit)
        try:
            entries, truncated = parse_tree(answer.data)
        except ValueError:
            raise self.api.unreadable() from None
        if truncated:
            entries = self._tree_of_archive(commit)
        self.cache.write("tree", self.api.name, commit, data=dump_tree(entries))
        return entries

    def _tree_of_archive(self, commit: str) -> list[Entry]:
        """The tree of a repository that is too large for one answer."""
        with self.api.archive(commit) as members:
            return [_entry_of(member) for member in members]

    # Files

    def snapshot(self, commit: str, reading: GitHubRef) -> Snapshot:
        """The skills at the reading's path in a commit."""
        entries = self._tree(commit)
        folders = find_skills(searchable_paths(entries), reading.path, self.api.text)
        drafts = draft_skills(entries, folders)
        contents = self._weighed(commit, drafts, LIMITS.total)
        bundles = tuple(draft.bundle(contents) for draft in drafts)
        return Snapshot(bundles, commit, reading.ref)

    def level(self, commit: str, reading: GitHubRef, policy: ScanPolicy) -> Tree:
        """The files of the one level below the reading's path in a commit."""
        text = self.api.text
        drafts, noticed = draft_level(self._tree(commit), reading.path, policy, text)
        contents = self._weighed(commit, drafts, _MAX_LEVEL)
        files, findings = level_of(drafts, contents)
        return Tree(files, commit, (*noticed, *findings), seen=time.time())

    def _weighed(self, commit: str, drafts: Sequence[Draft], limit: int) -> dict[str, bytes]:
        """The bytes of all files, by their ids. Raises: TooLarge, and as `_contents` does."""
        for draft in drafts:
            draft.weigh()
        if sum(_size(entry) for entry in files_of(drafts)) > limit:
            raise TooLarge(self.api.text, limit)
        return self._contents(commit, drafts)

    def _contents(self, commit: str, drafts: Sequence[Draft]) -> dict[str, bytes]:
        """The bytes of all files, by their ids. Raises: SourceUnavailable if one is missing."""
        kept = {draft.folder: self._kept(draft) for draft in drafts}
        contents = {sha: data for files in kept.values() for sha, data in files.items()}
        missing = _missing(drafts, contents)
        if len(missing) > _FEW:
            contents |= self._from_archive(commit, drafts, set(missing))
            missing = _missing(drafts, contents)
        if len(missing) > _MAX_MISSING:
            raise SourceUnavailable(
                self.api.host, f"its archive lacks {len(missing)} files of {self.api.name}"
            )
        contents |= self._one_by_one(missing.values())
        for draft in drafts:
            if not kept[draft.folder]:
                self._keep_files(draft, contents)
        return contents

    def _from_archive(
        self, commit: str, drafts: Sequence[Draft], missing: set[str]
    ) -> dict[str, bytes]:
        wanted = {e.path.encode("utf-8", "surrogatepass"): e for e in files_of(drafts)}
        found: dict[str, bytes] = {}
        with self.api.archive(commit) as members:
            for member in members:
                entry = wanted.get(member.path)
                if entry and entry.id in missing and _may_be(member, entry):
                    data = b"".join(member.content)
                    if is_blob(data, entry):
                        found[entry.id] = data
                if len(found) == len(missing):
                    break
        return found

    def _one_by_one(self, entries: Iterable[Entry]) -> dict[str, bytes]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return dict(pool.map(self._blob, entries))

    def _blob(self, entry: Entry) -> tuple[str, bytes]:
        request = Request(accept=_RAW)
        try:
            data = self.api.ask(f"git/blobs/{entry.id}", request, _size(entry)).data
        except TooLarge:
            data = None
        except SourceNotFound:
            raise SourceUnavailable(self.api.host, f"it does not give {entry.path!r}") from None
        if data is None or not is_blob(data, entry):
            problem = f"what it gives for {entry.path!r} is not what the commit holds"
            raise SourceUnavailable(self.api.host, problem)
        return entry.id, data

    # What is kept

    def _kept(self, draft: Draft) -> dict[str, bytes]:
        data = self.cache.read("files", *sorted(_ids(draft)))
        found: dict[str, bytes] = {}
        start = 0
        for entry in sorted(draft.entries.values()) if data else ():
            piece = (data or b"")[start : start + _size(entry)]
            start += _size(entry)
            if not is_blob(piece, entry):
                return {}
            found[entry.id] = piece
        return found

    def _keep_files(self, draft: Draft, contents: Mapping[str, bytes]) -> None:
        data = b"".join(contents[entry.id] for entry in sorted(draft.entries.values()))
        self.cache.write("files", *sorted(_ids(draft)), data=data)

    def remember(self, commit: str, path: str) -> None:
        """Note that all of this was read."""
        now = str(time.time())
        self._keep("last", self.reference.text, commit=commit, path=path, seen=now)
        self.cache.sweep()

    def last_snapshot(self, failure: SourceUnavailable | RateLimited) -> Snapshot:
        """What was read last, if all of it is kept; else the failure is raised."""
        commit, reading = self._last(failure)
        offline = replace(self, api=replace(self.api, failure=failure))
        return offline.snapshot(commit, reading)._replace(stale=str(failure))

    def last_level(self, failure: SourceUnavailable | RateLimited, policy: ScanPolicy) -> Tree:
        """The same for a level, which also says when it was read."""
        kept = _loaded(self.cache.read("last", self.reference.text), "commit", "seen")
        if kept is None:
            raise failure
        commit, reading = self._last(failure)
        offline = replace(self, api=replace(self.api, failure=failure))
        tree = offline.level(commit, reading, policy)
        return tree._replace(stale=str(failure), seen=float(kept[1]))

    def _last(self, failure: SourceUnavailable | RateLimited) -> tuple[str, GitHubRef]:
        """The commit that was read last here, or in another part of the repository."""
        readings = list(self.reference.readings())
        kept = _loaded(self.cache.read("last", self.reference.text), "commit", "path")
        if kept is not None:
            commit, path = kept
            return commit, next((one for one in readings if one.path == path), readings[0])
        for reading in readings:
            known = _loaded(self.cache.read("ref", self.api.name, reading.ref), "commit", "etag")
            if known is not None:
                return known[0], reading
        raise failure

    def _keep(self, kind: str, *key: str, **values: str) -> None:
        self.cache.write(kind, *key, data=json.dumps(values).encode("ascii"))


def _loaded(data: bytes | None, *names: str) -> tuple[str, str] | None:
    """Two texts that were kept, by their names."""
    try:
        found = json.loads(data or b"null")
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    first, second = (found.get(name) for name in names)
    return (first, second) if isinstance(first, str) and isinstance(second, str) else None


def _missing(drafts: Iterable[Draft], contents: Mapping[str, bytes]) -> dict[str, Entry]:
    return {entry.id: entry for entry in files_of(drafts) if entry.id not in contents}


def _ids(draft: Draft) -> set[str]:
    return {f"{entry.path} {entry.id}" for entry in draft.entries.values()}


def _size(entry: Entry) -> int:
    return entry.size or 0  # GitHub tells it of every file


def _may_be(member: Member, entry: Entry) -> bool:
    return member.is_file and member.size == entry.size


def _entry_of(member: Member) -> Entry:
    hashed = blob_hash(member.size)
    for chunk in member.content:
        hashed.update(chunk)
    mode = (EXECUTABLE if member.executable else PLAIN) if member.is_file else LINK
    path = member.path.decode("utf-8", "surrogateescape")
    return Entry(path, mode, hashed.hexdigest(), member.size)
