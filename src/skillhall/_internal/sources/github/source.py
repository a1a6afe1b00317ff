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

from skillhall._internal.net.fetch import FetchOptions
from skillhall._internal.sources.archive.source import DEFAULT_ARCHIVE_LIMITS
from skillhall._internal.sources.commit_tree import (
    MODE_EXECUTABLE,
    MODE_LINK,
    MODE_REGULAR,
    TreeEntry,
    build_level,
    collect_level,
    collect_skills,
    iterate_files,
    searchable_paths,
)
from skillhall._internal.sources.github.client import GitHubClient
from skillhall._internal.sources.github.response_cache import GitHubCache
from skillhall._internal.sources.github.tree import (
    dump_tree,
    load_tree,
    matches_blob,
    parse_tree,
    start_blob_hash,
)
from skillhall._internal.sources.ref import is_commit_id
from skillhall._internal.sources.repo_layout import FileTree, RepositorySkills, find_skills
from skillhall.errors import RateLimited, SourceNotFound, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.policy.scan_rules import ScanPolicy
    from skillhall._internal.sources.archive.tar_format import TarMember
    from skillhall._internal.sources.commit_tree import CommitSkill
    from skillhall._internal.sources.github.client import GitHubAccess
    from skillhall._internal.sources.ref import GitHubRef

_MIB = 1024 * 1024
_MAX_TREE = 50 * _MIB  # bytes of JSON; GitHub itself cuts trees at 7 MiB
_MAX_LEVEL = 500 * _MIB  # bytes of the files of one level, as by git
_MAX_SINGLE_FETCHES = 8  # files that are asked for one by one
# Repositories can keep files out of archives, or have them changed there (.gitattributes).
_MAX_MISSING = 32  # files that an archive may lack
_MAX_PARALLEL_REQUESTS = 4  # requests
_SHA = "application/vnd.github.sha"
_JSON = "application/vnd.github+json"
_RAW = "application/vnd.github.raw+json"
_SERVER_ERROR = 500


def read_github(
    reference: GitHubRef, access: GitHubAccess, *, source_text: str
) -> RepositorySkills:
    """The skills that the reference names; `text` is how the person wrote it.

    An older copy is given if GitHub does not answer, or asks to wait: see `Snapshot.stale`.
    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, NoSkillThere,
    SkillNotFound, ArchiveRejected, TooLarge.
    """
    reader = _open_reader(reference, access, source_text)
    try:
        commit, reading = reader.resolve()
        snapshot = reader.read_skills(commit, reading)
    except (SourceUnavailable, RateLimited) as error:
        if not _is_temporary(error):
            raise
        return reader.read_stale_skills(error)
    reader.record_success(commit, reading.path)
    return snapshot


def read_github_level(
    reference: GitHubRef, access: GitHubAccess, policy: ScanPolicy, *, source_text: str
) -> FileTree:
    """What a scan of the one level below the reference's path looks at, of the ref's commit.

    Raises: as `read_github`, but for skills that are missing.
    """
    reader = _open_reader(reference, access, source_text)
    try:
        commit, reading = reader.resolve()
        tree = reader.read_level(commit, reading, policy)
    except (SourceUnavailable, RateLimited) as error:
        if not _is_temporary(error):
            raise
        return reader.read_stale_level(error, policy)
    reader.record_success(commit, reading.path)
    return tree


def resolve_github_commit(reference: GitHubRef, access: GitHubAccess) -> str:
    """The commit that the ref has now.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, NoSkillThere.
    """
    return _open_reader(reference, access, reference.text).resolve()[0]


def _open_reader(
    reference: GitHubRef, access: GitHubAccess, source_text: str
) -> _GitHubRepositoryReader:
    name = f"{reference.owner}/{reference.repository}"
    cache = GitHubCache(access.cache_directory, access.api_url, access.token)
    return _GitHubRepositoryReader(reference, GitHubClient(access, name, source_text), cache)


def _is_temporary(error: SourceUnavailable | RateLimited) -> bool:
    """Whether it is a fault of the moment. A refusal is not: what was shown may be closed now."""
    status = 0 if isinstance(error, RateLimited) else error.status
    return status == 0 or status >= _SERVER_ERROR


@dataclass(frozen=True, slots=True)
class _GitHubRepositoryReader:
    """One repository, for as long as it is read."""

    reference: GitHubRef
    api: GitHubClient
    cache: GitHubCache

    # Commits

    def resolve(self) -> tuple[str, GitHubRef]:
        """The commit, and what the reference means; the branch of a page may have slashes."""
        for reading in self.reference.interpretations():
            try:
                return self._resolve_commit(reading.ref), reading
            except SourceNotFound:
                continue
        raise self.api.build_not_found_error(self.reference.ref)

    def _resolve_commit(self, ref: str) -> str:
        if is_commit_id(ref):
            return ref
        kept = _load_pair(self.cache.read("ref", self.api.repository, ref), "etag", "commit")
        etag, known = kept or ("", "")
        target = f"commits/{quote(ref or 'HEAD')}"
        answer = self.api.get(target, FetchOptions(etag, accept=_SHA), _MIB, ref=ref)
        commit = known if answer.is_not_modified else answer.data.decode("ascii", "replace").strip()
        if not is_commit_id(commit):
            raise self.api.build_malformed_response_error()
        if answer.etag and not answer.is_not_modified:
            self._cache_values("ref", self.api.repository, ref, etag=answer.etag, commit=commit)
        return commit

    # Trees

    def _read_tree(self, commit: str) -> Sequence[TreeEntry]:
        kept = self.cache.read("tree", self.api.repository, commit)
        if kept is not None:
            try:
                return load_tree(kept)
            except (ValueError, TypeError):
                pass  # as good as not kept
        target = f"git/trees/{commit}?recursive=1"
        answer = self.api.get(target, FetchOptions(accept=_JSON), _MAX_TREE, ref=commit)
        try:
            entries, truncated = parse_tree(answer.data)
        except ValueError:
            raise self.api.build_malformed_response_error() from None
        if truncated:
            entries = self._read_tree_from_archive(commit)
        self.cache.write("tree", self.api.repository, commit, data=dump_tree(entries))
        return entries

    def _read_tree_from_archive(self, commit: str) -> list[TreeEntry]:
        """The tree of a repository that is too large for one answer."""
        with self.api.open_archive(commit) as members:
            return [_build_entry(member) for member in members]

    # Files

    def read_skills(self, commit: str, reading: GitHubRef) -> RepositorySkills:
        """The skills at the reading's path in a commit."""
        entries = self._read_tree(commit)
        folders = find_skills(searchable_paths(entries), reading.path, self.api.source_text)
        drafts = collect_skills(entries, folders)
        contents = self._read_limited_contents(commit, drafts, DEFAULT_ARCHIVE_LIMITS.total)
        bundles = tuple(draft.build_bundle(contents) for draft in drafts)
        return RepositorySkills(bundles, commit, reading.ref)

    def read_level(self, commit: str, reading: GitHubRef, policy: ScanPolicy) -> FileTree:
        """The files of the one level below the reading's path in a commit."""
        text = self.api.source_text
        drafts, noticed = collect_level(self._read_tree(commit), reading.path, policy, text)
        contents = self._read_limited_contents(commit, drafts, _MAX_LEVEL)
        files, findings = build_level(drafts, contents)
        return FileTree(files, commit, (*noticed, *findings), checked_at=time.time())

    def _read_limited_contents(
        self, commit: str, skills: Sequence[CommitSkill], limit: int
    ) -> dict[str, bytes]:
        """The bytes of all files, by their ids. Raises: TooLarge, and as `_contents` does."""
        for draft in skills:
            draft.apply_size_limits()
        if sum(_entry_size(entry) for entry in iterate_files(skills)) > limit:
            raise TooLarge(self.api.source_text, limit)
        return self._read_contents(commit, skills)

    def _read_contents(self, commit: str, skills: Sequence[CommitSkill]) -> dict[str, bytes]:
        """The bytes of all files, by their ids. Raises: SourceUnavailable if one is missing."""
        kept = {draft.folder: self._read_cached_files(draft) for draft in skills}
        contents = {sha: data for files in kept.values() for sha, data in files.items()}
        missing = _find_missing(skills, contents)
        if len(missing) > _MAX_SINGLE_FETCHES:
            contents |= self._read_from_archive(commit, skills, set(missing))
            missing = _find_missing(skills, contents)
        if len(missing) > _MAX_MISSING:
            raise SourceUnavailable(
                self.api.host, f"its archive lacks {len(missing)} files of {self.api.repository}"
            )
        contents |= self._fetch_blobs(missing.values())
        for draft in skills:
            if not kept[draft.folder]:
                self._cache_files(draft, contents)
        return contents

    def _read_from_archive(
        self, commit: str, skills: Sequence[CommitSkill], missing: set[str]
    ) -> dict[str, bytes]:
        wanted = {e.path.encode("utf-8", "surrogatepass"): e for e in iterate_files(skills)}
        found: dict[str, bytes] = {}
        with self.api.open_archive(commit) as members:
            for member in members:
                entry = wanted.get(member.path)
                if entry and entry.id in missing and _matches_entry(member, entry):
                    data = b"".join(member.content)
                    if matches_blob(data, entry):
                        found[entry.id] = data
                if len(found) == len(missing):
                    break
        return found

    def _fetch_blobs(self, entries: Iterable[TreeEntry]) -> dict[str, bytes]:
        with ThreadPoolExecutor(_MAX_PARALLEL_REQUESTS) as pool:
            return dict(pool.map(self._fetch_blob, entries))

    def _fetch_blob(self, entry: TreeEntry) -> tuple[str, bytes]:
        request = FetchOptions(accept=_RAW)
        try:
            data = self.api.get(f"git/blobs/{entry.id}", request, _entry_size(entry)).data
        except TooLarge:
            data = None
        except SourceNotFound:
            raise SourceUnavailable(self.api.host, f"it does not give {entry.path!r}") from None
        if data is None or not matches_blob(data, entry):
            problem = f"what it gives for {entry.path!r} is not what the commit holds"
            raise SourceUnavailable(self.api.host, problem)
        return entry.id, data

    # What is kept

    def _read_cached_files(self, skill: CommitSkill) -> dict[str, bytes]:
        data = self.cache.read("files", *sorted(_cache_key_parts(skill)))
        found: dict[str, bytes] = {}
        start = 0
        for entry in sorted(skill.entries.values()) if data else ():
            piece = (data or b"")[start : start + _entry_size(entry)]
            start += _entry_size(entry)
            if not matches_blob(piece, entry):
                return {}
            found[entry.id] = piece
        return found

    def _cache_files(self, skill: CommitSkill, contents: Mapping[str, bytes]) -> None:
        data = b"".join(contents[entry.id] for entry in sorted(skill.entries.values()))
        self.cache.write("files", *sorted(_cache_key_parts(skill)), data=data)

    def record_success(self, commit: str, path: str) -> None:
        """Note that all of this was read."""
        now = str(time.time())
        self._cache_values("last", self.reference.text, commit=commit, path=path, seen=now)
        self.cache.evict()

    def read_stale_skills(self, failure: SourceUnavailable | RateLimited) -> RepositorySkills:
        """What was read last, if all of it is kept; else the failure is raised."""
        commit, reading = self._find_last_read(failure)
        offline = replace(self, api=replace(self.api, offline_error=failure))
        return offline.read_skills(commit, reading)._replace(stale=str(failure))

    def read_stale_level(
        self, failure: SourceUnavailable | RateLimited, policy: ScanPolicy
    ) -> FileTree:
        """The same for a level, which also says when it was read."""
        kept = _load_pair(self.cache.read("last", self.reference.text), "commit", "seen")
        if kept is None:
            raise failure
        commit, reading = self._find_last_read(failure)
        offline = replace(self, api=replace(self.api, offline_error=failure))
        tree = offline.read_level(commit, reading, policy)
        return tree._replace(stale=str(failure), checked_at=float(kept[1]))

    def _find_last_read(self, failure: SourceUnavailable | RateLimited) -> tuple[str, GitHubRef]:
        """The commit that was read last here, or in another part of the repository."""
        readings = list(self.reference.interpretations())
        kept = _load_pair(self.cache.read("last", self.reference.text), "commit", "path")
        if kept is not None:
            commit, path = kept
            return commit, next((one for one in readings if one.path == path), readings[0])
        for reading in readings:
            known = _load_pair(
                self.cache.read("ref", self.api.repository, reading.ref), "commit", "etag"
            )
            if known is not None:
                return known[0], reading
        raise failure

    def _cache_values(self, kind: str, *key: str, **values: str) -> None:
        self.cache.write(kind, *key, data=json.dumps(values).encode("ascii"))


def _load_pair(data: bytes | None, *names: str) -> tuple[str, str] | None:
    """Two texts that were kept, by their names."""
    try:
        found = json.loads(data or b"null")
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    first, second = (found.get(name) for name in names)
    return (first, second) if isinstance(first, str) and isinstance(second, str) else None


def _find_missing(
    skills: Iterable[CommitSkill], contents: Mapping[str, bytes]
) -> dict[str, TreeEntry]:
    return {entry.id: entry for entry in iterate_files(skills) if entry.id not in contents}


def _cache_key_parts(skill: CommitSkill) -> set[str]:
    return {f"{entry.path} {entry.id}" for entry in skill.entries.values()}


def _entry_size(entry: TreeEntry) -> int:
    return entry.size or 0  # GitHub tells it of every file


def _matches_entry(member: TarMember, entry: TreeEntry) -> bool:
    return member.is_file and member.size == entry.size


def _build_entry(member: TarMember) -> TreeEntry:
    hashed = start_blob_hash(member.size)
    for chunk in member.content:
        hashed.update(chunk)
    mode = (MODE_EXECUTABLE if member.executable else MODE_REGULAR) if member.is_file else MODE_LINK
    path = member.path.decode("utf-8", "surrogateescape")
    return TreeEntry(path, mode, hashed.hexdigest(), member.size)
