"""Skills in GitHub repositories, read without git from GitHub's API and archives.

The tree of a commit lists its files, and every file is verified against its hash in the tree.
Names, modes and sizes in the archive are not trusted.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from skillhall._internal.net.fetch import FetchOptions
from skillhall._internal.sources.archive.source import DEFAULT_ARCHIVE_LIMITS
from skillhall._internal.sources.commit_tree import (
    MODE_EXECUTABLE,
    MODE_LINK,
    MODE_REGULAR,
    CommitFiles,
    TreeEntry,
    collect_level,
    iterate_files,
    select_skills,
)
from skillhall._internal.sources.git.git_ref import GitRef
from skillhall._internal.sources.git.process import is_git_available
from skillhall._internal.sources.git.source import is_git_tag, open_git
from skillhall._internal.sources.github.client import GitHubAccess, GitHubClient
from skillhall._internal.sources.github.response_cache import GitHubCache
from skillhall._internal.sources.github.tree import (
    dump_tree,
    load_tree,
    matches_blob,
    parse_tree,
    start_blob_hash,
)
from skillhall._internal.sources.source_text import is_commit_id
from skillhall.errors import RateLimited, SourceNotFound, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.folder_walk_rules import ScanPolicy
    from skillhall._internal.sources.archive.tar_format import TarMember
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.commit_tree import CommitSkill, FileSelector
    from skillhall._internal.sources.github.github_ref import GitHubRef
    from skillhall._internal.sources.repo_layout import FileTree, RepositorySkills

_MIB = 1024 * 1024
_MAX_TREE = 50 * _MIB  # bytes of JSON; GitHub truncates trees at 7 MiB
_MAX_LEVEL = 500 * _MIB  # bytes of the files of one level; the limit of git sources
_MAX_SINGLE_FETCHES = 8  # more files are read from an archive
# .gitattributes can exclude files from archives or change them there. Up to this many are fetched
# one by one.
_MAX_MISSING = 32
_MAX_PARALLEL_REQUESTS = 4
_SHA = "application/vnd.github.sha"
_JSON = "application/vnd.github+json"
_RAW = "application/vnd.github.raw+json"
_SERVER_ERROR = 500


def open_github(reference: GitHubRef, context: SourceContext) -> RepositorySkills:
    """Read skills with git, or with GitHub's API where git is not available.

    Raises: as `read_git` and `read_github`.
    """
    if (git_ref := _find_git_ref(reference, context)) is not None:
        return open_git(git_ref, context, reference.text)
    return read_github(reference, _build_access(context), source_text=reference.text)


def is_github_tag(reference: GitHubRef, context: SourceContext) -> bool:
    """Whether the reference's ref is a tag now. Raises: as `open_github`."""
    if (git_ref := _find_git_ref(reference, context)) is not None:
        return is_git_tag(git_ref, context)
    if not reference.ref or reference.is_pinned:
        return False
    return _open_reader(reference, _build_access(context), reference.text).is_tag()


def _find_git_ref(reference: GitHubRef, context: SourceContext) -> GitRef | None:
    """Return the reference for git; `None` where git is not available."""
    settings = context.settings
    if not (settings.use_git and is_git_available()):
        return None
    return GitRef(reference.git_url(settings.github_url), reference.path, reference.ref)


def _build_access(context: SourceContext) -> GitHubAccess:
    settings = context.settings
    return GitHubAccess(
        settings.github_api_url,
        context.address_policy,
        settings.tokens if context.with_credentials else {},
        settings.cache_directory,
        progress=context.get_progress("Downloading"),
    )


def read_github(
    reference: GitHubRef, access: GitHubAccess, *, source_text: str
) -> RepositorySkills:
    """Read the skills of a reference; `source_text` names it in errors.

    If GitHub is unavailable or rate limited, the cached version is used and marked as stale.
    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, NoSkillThere,
    SkillNotFound, ArchiveRejected, TooLarge.
    """
    select = partial(select_skills, source_text=source_text)
    reader = _open_reader(reference, access, source_text)
    return reader.read(select, DEFAULT_ARCHIVE_LIMITS.total).to_skills()


def read_github_level(
    reference: GitHubRef, access: GitHubAccess, policy: ScanPolicy, *, source_text: str
) -> FileTree:
    """Read the files that `collect_level` selects below the reference's path.

    Raises: as `read_github`, except SkillNotFound.
    """
    select = partial(collect_level, policy=policy, source_text=source_text)
    reader = _open_reader(reference, access, source_text)
    return reader.read(select, _MAX_LEVEL, needs_time=True).to_level()


def resolve_github_commit(reference: GitHubRef, access: GitHubAccess) -> str:
    """Return the current commit of the reference's ref.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, NoSkillThere.
    """
    return _open_reader(reference, access, reference.text).resolve()[0]


def _open_reader(
    reference: GitHubRef, access: GitHubAccess, source_text: str
) -> _GitHubRepositoryReader:
    name = f"{reference.owner}/{reference.name}"
    cache = GitHubCache(access.cache_directory, access.api_url, access.token)
    return _GitHubRepositoryReader(reference, GitHubClient(access, name, source_text), cache)


@dataclass(frozen=True, slots=True)
class _GitHubRepositoryReader:
    """Reads one repository through the API and the cache."""

    reference: GitHubRef
    api: GitHubClient
    cache: GitHubCache

    def read(self, select: FileSelector, limit: int, *, needs_time: bool = False) -> CommitFiles:
        """Read the current version or, in an outage, the cached one.

        `limit` is the maximum total size in bytes. With `needs_time`, the cached version is used
        only if the time at which it was read is known. Raises: as `read_github`.
        """
        try:
            commit, ref = self.resolve()
            files = self.read_commit(commit, ref, select, limit)
        except (SourceUnavailable, RateLimited) as error:
            status = 0 if isinstance(error, RateLimited) else error.status
            if 0 < status < _SERVER_ERROR:  # access may have been revoked
                raise
            commit, ref, checked_at = self._find_last_read()
            if not commit or (needs_time and not checked_at):
                raise
            offline = replace(self, api=replace(self.api, offline_error=error))
            files = offline.read_commit(commit, ref, select, limit)
            return files._replace(stale=str(error), checked_at=checked_at)
        now = time.time()
        values = {"commit": commit, "path": ref.path, "seen": str(now)}
        self._cache_values("last", self.reference.text, **values)
        self.cache.evict()
        return files._replace(checked_at=now)

    def read_commit(
        self, commit: str, ref: GitHubRef, select: FileSelector, limit: int
    ) -> CommitFiles:
        """Read the selected files of a commit. Raises: as `read_github`."""
        skills, findings = select(self._read_tree(commit), ref.path)
        contents = self._read_contents(commit, skills, limit)
        return CommitFiles(skills, findings, contents, commit, ref.ref)

    def resolve(self) -> tuple[str, GitHubRef]:
        """Return the current commit, and the interpretation whose ref points to it."""
        for ref in self.reference.interpretations():
            try:
                return self._resolve_commit(ref.ref), ref
            except SourceNotFound:
                continue
        raise self.api.build_not_found_error(self.reference.ref)

    def is_tag(self) -> bool:
        """Whether the ref of the reference is a tag. Raises: as `read_github`."""
        name = self.reference.ref.removeprefix("refs/").removeprefix("tags/")
        try:
            self.api.get(f"git/ref/tags/{quote(name)}", FetchOptions(accept=_JSON), _MIB)
        except SourceNotFound:
            return False
        return True

    def _resolve_commit(self, ref: str) -> str:
        if is_commit_id(ref):
            return ref
        values = _load_values(self.cache.read("ref", self.api.repository, ref))
        is_cached = "etag" in values and "commit" in values
        etag, commit = (values["etag"], values["commit"]) if is_cached else ("", "")
        target = f"commits/{quote(ref or 'HEAD')}"
        result = self.api.get(target, FetchOptions(etag, accept=_SHA), _MIB, ref=ref)
        if not result.is_not_modified:
            commit = result.data.decode("ascii", "replace").strip()
        if not is_commit_id(commit):
            raise self.api.build_malformed_response_error()
        if result.etag and not result.is_not_modified:
            self._cache_values("ref", self.api.repository, ref, etag=result.etag, commit=commit)
        return commit

    def _read_tree(self, commit: str) -> Sequence[TreeEntry]:
        cached = self.cache.read("tree", self.api.repository, commit)
        if cached is not None:
            try:
                return load_tree(cached)
            except (ValueError, TypeError):
                pass  # a damaged entry is a cache miss
        target = f"git/trees/{commit}?recursive=1"
        result = self.api.get(target, FetchOptions(accept=_JSON), _MAX_TREE, ref=commit)
        try:
            entries, is_truncated = parse_tree(result.data)
        except ValueError:
            raise self.api.build_malformed_response_error() from None
        if is_truncated:  # a large repository
            with self.api.open_archive(commit) as members:
                entries = [_hash_member(member) for member in members]
        self.cache.write("tree", self.api.repository, commit, data=dump_tree(entries))
        return entries

    def _read_contents(
        self, commit: str, skills: Sequence[CommitSkill], limit: int
    ) -> dict[str, bytes]:
        """Return the files' bytes by object id. Raises: TooLarge, SourceUnavailable."""
        for skill in skills:
            skill.apply_size_limits()
        if sum(_entry_size(entry) for entry in iterate_files(skills)) > limit:
            raise TooLarge(self.api.source_text, limit)
        cached = {skill.folder: self._read_cached_files(skill) for skill in skills}
        contents = {sha: data for files in cached.values() for sha, data in files.items()}
        missing = {e.id: e for e in iterate_files(skills) if e.id not in contents}
        if len(missing) > _MAX_SINGLE_FETCHES:
            contents |= self._read_from_archive(commit, skills, set(missing))
            missing = {e.id: e for e in iterate_files(skills) if e.id not in contents}
        if len(missing) > _MAX_MISSING:
            problem = f"{len(missing)} files are missing from the archive of {self.api.repository}"
            raise SourceUnavailable(self.api.host, problem)
        with ThreadPoolExecutor(_MAX_PARALLEL_REQUESTS) as pool:
            contents |= dict(pool.map(self._fetch_blob, missing.values()))
        for skill in skills:
            if not cached[skill.folder]:
                data = b"".join(contents[entry.id] for entry in sorted(skill.entries.values()))
                self.cache.write("files", *_cache_key(skill), data=data)
        return contents

    def _read_from_archive(
        self, commit: str, skills: Sequence[CommitSkill], missing: set[str]
    ) -> dict[str, bytes]:
        entries = {e.path.encode("utf-8", "surrogatepass"): e for e in iterate_files(skills)}
        contents: dict[str, bytes] = {}
        with self.api.open_archive(commit) as members:
            for member in members:
                entry = entries.get(member.path)
                is_expected = entry is not None and member.is_file and member.size == entry.size
                if entry and entry.id in missing and is_expected:
                    data = b"".join(member.content)
                    if matches_blob(data, entry):
                        contents[entry.id] = data
                if len(contents) == len(missing):
                    break
        return contents

    def _fetch_blob(self, entry: TreeEntry) -> tuple[str, bytes]:
        options = FetchOptions(accept=_RAW)
        try:
            data = self.api.get(f"git/blobs/{entry.id}", options, _entry_size(entry)).data
        except TooLarge:
            data = None
        except SourceNotFound:
            raise SourceUnavailable(self.api.host, f"{entry.path!r} was not found") from None
        if data is None or not matches_blob(data, entry):
            problem = f"the content of {entry.path!r} does not match the commit"
            raise SourceUnavailable(self.api.host, problem)
        return entry.id, data

    def _read_cached_files(self, skill: CommitSkill) -> dict[str, bytes]:
        data = self.cache.read("files", *_cache_key(skill))
        contents: dict[str, bytes] = {}
        start = 0
        for entry in sorted(skill.entries.values()) if data else ():
            content = (data or b"")[start : start + _entry_size(entry)]
            start += len(content)
            if not matches_blob(content, entry):
                return {}
            contents[entry.id] = content
        return contents

    def _find_last_read(self) -> tuple[str, GitHubRef, float]:
        """Return the commit, interpretation and time of the last read of this reference.

        If it was never read, returns the last known commit of its ref, with time 0. The commit is
        "" if none is known.
        """
        refs = list(self.reference.interpretations())
        values = _load_values(self.cache.read("last", self.reference.text))
        if "commit" in values and "path" in values:
            ref = next((ref for ref in refs if ref.path == values["path"]), refs[0])
            return values["commit"], ref, float(values.get("seen", 0))
        for ref in refs:
            values = _load_values(self.cache.read("ref", self.api.repository, ref.ref))
            if "commit" in values and "etag" in values:
                return values["commit"], ref, 0.0
        return "", self.reference, 0.0

    def _cache_values(self, kind: str, *key: str, **values: str) -> None:
        self.cache.write(kind, *key, data=json.dumps(values).encode("ascii"))


def _load_values(data: bytes | None) -> dict[str, str]:
    """Return cached strings by name; a damaged entry is a cache miss."""
    try:
        values = json.loads(data or b"null")
    except ValueError:
        return {}
    pairs = values.items() if isinstance(values, dict) else ()
    return {name: text for name, text in pairs if isinstance(text, str)}


def _cache_key(skill: CommitSkill) -> list[str]:
    return sorted({f"{entry.path} {entry.id}" for entry in skill.entries.values()})


def _entry_size(entry: TreeEntry) -> int:
    return entry.size or 0  # GitHub lists the size of every file


def _hash_member(member: TarMember) -> TreeEntry:
    digest = start_blob_hash(member.size)
    for chunk in member.content:
        digest.update(chunk)
    mode = (MODE_EXECUTABLE if member.executable else MODE_REGULAR) if member.is_file else MODE_LINK
    path = member.path.decode("utf-8", "surrogateescape")
    return TreeEntry(path, mode, digest.hexdigest(), member.size)
