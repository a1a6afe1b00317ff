"""List of followed repositories in `<data>/followed.json`. It contains no tokens.

A file that cannot be parsed is reported and never overwritten.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.access.actor import AuditedChange
from skillhall._internal.prompt_server.prompt_model import FollowedRepository
from skillhall._internal.prompt_server.repo_source import parse_requested_repository
from skillhall._internal.skill.bundle import RelativePath, sha256_hex
from skillhall._internal.sources.git.git_ref import GitRef
from skillhall.errors import (
    ConfigInvalid,
    Conflict,
    FieldRefused,
    NotAFile,
    RecordNotFound,
    SkillFileNotFound,
    SourceRejected,
    TooLarge,
    UnsafePath,
    without_credentials,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.prompt_server.prompt_model import SourceSelector
    from skillhall._internal.prompt_server.repo_source import GitHosts, Repository
    from skillhall._internal.storage.audit.file_audit import FileAudit

FILE = "followed.json"
VERSION = 1
MAX_FOLLOWED = 20
MAX_FIELD_LENGTH = 1000  # characters of a URL or path
_MAX_FILE_BYTES = 128 * 1024
_FIX_HINT = "correct the file or move it away, then refresh"
_TOKEN_HINT = (
    "remove the credentials and the query string from the URL;"  # noqa: S105 - not a secret
    " if the repository is private, ask your administrator to add it to SKILLHALL_GIT_TOKEN_REPOS"
)


def parse_followed(selector: SourceSelector, hosts: GitHosts) -> FollowedRepository:
    """Normalize the repository that a request names. Raises: SourceRejected."""
    repo = selector.repo.strip()
    if without_credentials(repo) != repo:
        raise SourceRejected(
            "url", repo, "it contains a user name, a password or a query string", _TOKEN_HINT
        )
    repository = parse_requested_repository(
        repo, selector.path.strip(), selector.branch.strip(), hosts
    )
    branch = "" if repository.may_fall_back else repository.reference.ref
    followed = FollowedRepository(repository.reference.url, repository.reference.path, branch)
    if max(map(len, followed)) > MAX_FIELD_LENGTH:
        raise SourceRejected("url", repo, "it is too long")
    return followed


def format_followed(followed: FollowedRepository) -> str:
    """Return the display name, without credentials that a hand-edited file may have."""
    return without_credentials(GitRef(*followed).text)


def to_repository(followed: FollowedRepository, hosts: GitHosts) -> Repository:
    """Parse an entry of the list into a `Repository`. Raises: SourceRejected."""
    return parse_requested_repository(*followed, hosts)


class FollowedList:
    """List of followed repositories in a file, shared by all processes of one machine."""

    def __init__(self, data_directory: str, file_audit: FileAudit | None = None) -> None:
        self._folder = data_directory
        self._file_audit = file_audit

    def read(self) -> tuple[FollowedRepository, ...]:
        """Return all repositories in insertion order. Raises: ConfigInvalid, OSError."""
        try:
            with open_root(self._folder) as root:
                data = read_below(root, RelativePath.parse(FILE), _MAX_FILE_BYTES)
        except (FileNotFoundError, SkillFileNotFound):
            return ()
        except (NotAFile, TooLarge, UnsafePath):
            raise _invalid_file_error("it is too large or not a regular file") from None
        return parse_followed_file(data)

    def add(self, followed: FollowedRepository, actor: Actor) -> tuple[FollowedRepository, ...]:
        """Append a repository; return the new list.

        Raises: Conflict, FieldRefused, ConfigInvalid, OSError, DatabaseUnavailable.
        """

        def append(repositories: list[FollowedRepository]) -> AuditedChange:
            check_can_add(followed, repositories)
            repositories.append(followed)
            digests = {format_followed(followed): ("", _digest(followed))}
            return AuditedChange(actor, "source.follow", digests)

        return self._edit_list(append)

    def remove(
        self, key: str, actor: Actor
    ) -> tuple[FollowedRepository, tuple[FollowedRepository, ...]]:
        """Remove a repository; return it and the remaining list.

        Raises: RecordNotFound, ConfigInvalid, OSError, DatabaseUnavailable.
        """
        removed: list[FollowedRepository] = []

        def remove(repositories: list[FollowedRepository]) -> AuditedChange:
            removed[:] = [repo for repo in repositories if repo.key == key][:1]
            if not removed:
                raise RecordNotFound("followed repository", key)
            repositories.remove(removed[0])
            digests = {format_followed(removed[0]): (_digest(removed[0]), "")}
            return AuditedChange(actor, "source.unfollow", digests)

        remaining = self._edit_list(remove)
        return removed[0], remaining

    def recover(self) -> None:
        """Record a change that a killed process made. Raises: DatabaseUnavailable, OSError."""
        if self._file_audit is not None and os.path.isdir(self._folder):
            with WritableFolder(self._folder) as folder, folder.lock():
                self._file_audit.recover(self._find_digest)

    def _edit_list(
        self, edit: Callable[[list[FollowedRepository]], AuditedChange]
    ) -> tuple[FollowedRepository, ...]:
        """Lock the list, edit it, write it, and return it."""
        os.makedirs(self._folder, exist_ok=True)
        with WritableFolder(self._folder) as folder, folder.lock():
            repositories = [*self.read()]
            change = edit(repositories)
            rows = [repo._asdict() for repo in repositories]
            text = json.dumps({"version": VERSION, "repositories": rows}, indent=2)

            def write() -> None:
                folder.write_file(FILE, f"{text}\n".encode("ascii"), 0o600)

            if self._file_audit is None:
                write()
            else:
                self._file_audit.run(change, write, self._find_digest)
        return tuple(repositories)

    def _find_digest(self, name: str) -> str:
        """Return the digest of an entry, by its display name; "" if there is none."""
        return next((_digest(repo) for repo in self.read() if format_followed(repo) == name), "")


def _digest(followed: FollowedRepository) -> str:
    return f"sha256:{sha256_hex(json.dumps(followed).encode())}"


def check_can_add(followed: FollowedRepository, existing: Sequence[FollowedRepository]) -> None:
    """Check that a repository can be added. Raises: Conflict, FieldRefused."""
    if followed in existing:
        raise Conflict(
            format_followed(followed),
            "this repository is already followed; name another folder or branch",
        )
    if len(existing) >= MAX_FOLLOWED:
        raise FieldRefused(
            "repository", f"{MAX_FOLLOWED} repositories are already followed", "remove one first"
        )


def parse_followed_file(data: bytes) -> tuple[FollowedRepository, ...]:
    """Parse the content of the file. Raises: ConfigInvalid."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _invalid_file_error("it is not valid JSON") from None
    fields = value if isinstance(value, dict) else {}
    rows = fields.get("repositories")
    if not isinstance(rows, list) or fields.get("version") != VERSION:
        raise _invalid_file_error(f"it is not a list of repositories in format version {VERSION}")
    if len(rows) > MAX_FOLLOWED:
        raise _invalid_file_error(f"it contains more than {MAX_FOLLOWED} repositories")
    repositories = []
    for row in rows:
        row_fields = row if isinstance(row, dict) else {}
        values = [row_fields.get(name, "") for name in FollowedRepository._fields]
        if not values[0] or not all(
            isinstance(value, str) and len(value) <= MAX_FIELD_LENGTH for value in values
        ):
            raise _invalid_file_error("one of its entries is not a valid repository")
        repositories.append(FollowedRepository(*values))
    return tuple(dict.fromkeys(repositories))


def _invalid_file_error(problem: str) -> ConfigInvalid:
    return ConfigInvalid(FILE, problem, _FIX_HINT)
