"""The git repository: a bare repository with a commit and tags for each publication."""

from __future__ import annotations

import hashlib
import os
import time
from calendar import timegm
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.publishing.file_tree import OutputChange, check_paths, compare_files
from skillhall._internal.publishing.release_notes import render_release_notes
from skillhall._internal.sources.git.process import (
    GitLimitExceeded,
    GitNotAvailable,
    GitRunLimits,
    GitRunOptions,
    GitTimedOut,
    run_git,
)
from skillhall.errors import ConfigInvalid, SourceTimedOut, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.publishing.file_tree import FileTree
    from skillhall._internal.publishing.publication import Publication

_BRANCH = "refs/heads/main"
_TAGS = "refs/tags/"
_TIMEOUT = 120.0  # seconds
_NO_EMAIL = "noreply@localhost.invalid"  # git needs an address
_EXECUTABLE, _REGULAR = "100755", "100644"
_DATE_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


class PlannedRepository(NamedTuple):
    """The files and tags of a repository, and how they differ from those that it has."""

    path: str
    files: FileTree
    changes: tuple[OutputChange, ...]  # of files and tags
    tags: tuple[str, ...]  # new ones
    publication: Publication
    has_branch: bool

    def read_present(self, path: str) -> bytes:
        """Read a file of the branch; empty if it is new. Raises: SourceUnavailable."""
        is_new = not self.has_branch or OutputChange(path, "added") in self.changes
        return b"" if is_new else _run(self.path, "cat-file", "blob", f"{_BRANCH}:{path}")

    def apply(self) -> None:
        """Add the commit and the tags. Raises: SourceUnavailable, SourceTimedOut, OSError."""
        if not self.changes:
            return
        if not os.path.lexists(self.path):
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            _run(self.path, "init", "--quiet", "--bare", "--template=", "--initial-branch=main")
        # The branch and the tags change only after all commands were read.
        _run(self.path, "fast-import", "--quiet", "--done", stdin=b"".join(self._iter_commands()))

    def _iter_commands(self) -> Iterator[bytes]:
        """Yield the commands that `git fast-import` reads."""
        notes = render_release_notes(self.publication)
        commit = _BRANCH
        if len(self.changes) > len(self.tags):
            commit = ":1"
            yield f"commit {_BRANCH}\nmark {commit}\n{self._identify('committer')}".encode()
            yield _format_data(notes.encode())
            if self.has_branch:
                yield f"from {_BRANCH}^0\n".encode()
            yield b"deleteall\n"
            for path, (data, mode) in self.files.items():
                yield f"M {_get_git_mode(mode)} inline {_quote(path)}\n".encode()
                yield _format_data(data)
        releases = {one.name: one.release for one in self.publication.skills}
        for tag in self.tags:
            name, at, _ = tag.partition("@")
            text = notes
            if at:
                changes = [f"- {change}\n" for change in releases[name].changes]
                text = f"{tag}\n\n{''.join(changes)}"
            yield f"tag {tag}\nfrom {commit}\n{self._identify('tagger')}".encode()
            yield _format_data(text.encode())
        yield b"done\n"

    def _identify(self, role: str) -> str:
        """Return the line about the author, at the date of the version.

        The same publication gives the same commit.
        """
        metadata = self.publication.metadata
        name, email = map(_remove_brackets, (metadata.author, metadata.email or _NO_EMAIL))
        date = time.strptime(self.publication.release.date, _DATE_FORMAT)
        return f"{role} {name} <{email}> {timegm(date)} +0000\n"


def plan_repository(
    path: str, files: FileTree, publication: Publication, config: str
) -> PlannedRepository:
    """Compare a repository with the files that its branch should have.

    Raises: UnsafePath, ConfigInvalid if there is something else at the path, SourceUnavailable
    without git, SourceTimedOut.
    """
    check_paths(files)
    old: dict[str, str] = {}
    known: set[str] = set()
    if os.path.lexists(path):
        refs = _list_refs(path, config)
        if _BRANCH in refs:
            old = _list_files(path)
        known = {ref.removeprefix(_TAGS) for ref in refs if ref.startswith(_TAGS)}
    new = {
        name: f"{_get_git_mode(mode)} {_hash_blob(data)}" for name, (data, mode) in files.items()
    }
    wanted = [f"v{publication.release.version}"]
    wanted += [f"{one.name}@{one.release.version}" for one in publication.skills]
    tags = tuple(tag for tag in wanted if tag not in known)
    changes = (*compare_files(old, new), *(OutputChange(f"tag {tag}", "added") for tag in tags))
    return PlannedRepository(path, files, changes, tags, publication, bool(old))


def _list_refs(path: str, config: str) -> frozenset[str]:
    # Without the check, git would find the repository in a parent folder.
    if os.path.islink(path) or not os.path.isfile(os.path.join(path, "HEAD")):
        raise ConfigInvalid(
            config, f"{path!r} is not a bare git repository", "choose another folder"
        )
    return frozenset(_run(path, "for-each-ref", "--format=%(refname)").decode().splitlines())


def _list_files(path: str) -> dict[str, str]:
    """Return the mode and the id of each file of the branch."""
    found = {}
    for row in filter(None, _run(path, "ls-tree", "-r", "-z", _BRANCH).split(b"\0")):
        facts, _, name = row.partition(b"\t")
        mode, _, identity = facts.decode().split(" ")
        found[name.decode("utf-8", "surrogateescape")] = f"{mode} {identity}"
    return found


def _run(path: str, *arguments: str, stdin: bytes | None = None) -> bytes:
    limits = GitRunLimits(time.monotonic() + _TIMEOUT)
    try:
        result = run_git(path, arguments, limits, GitRunOptions(stdin=stdin))
    except GitTimedOut:
        raise SourceTimedOut("git", f"{arguments[0]} took more than {_TIMEOUT:.0f} s") from None
    except (GitNotAvailable, GitLimitExceeded):
        raise SourceUnavailable("git", "git is not installed, or too old") from None
    if result.exit_code:
        raise SourceUnavailable("git", f"{arguments[0]} failed: {result.stderr.strip()[-200:]}")
    return result.stdout


def _get_git_mode(mode: int) -> str:
    return _EXECUTABLE if mode & 0o100 else _REGULAR


def _hash_blob(data: bytes) -> str:
    # The object id of git, not a signature.
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _format_data(data: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(data), data)


def _quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _remove_brackets(text: str) -> str:
    return text.replace("<", "").replace(">", "").strip()
