"""The list of repositories that people follow, and its place on disk; tokens are not in it.

```text
<data>/followed.json     {"version": 1, "repositories": [{"repo": …, "path": …, "branch": …}]}
```

A file that cannot be understood is told of and never overwritten.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.prompts.prompt_model import FollowedRepository
from skillhall._internal.prompts.repo_source import parse_requested_repository
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.sources.ref import GitRef
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
    from collections.abc import Iterator, Sequence

    from skillhall._internal.prompts.prompt_model import SourceSelector
    from skillhall._internal.prompts.repo_source import GitHosts, Repository

FILE = "followed.json"
VERSION = 1
MAX_FOLLOWED = 20
MAX_FIELD_LENGTH = 1000  # characters of an address or a path
_MAX_FILE_BYTES = 128 * 1024  # bytes of the file
_FIX_HINT = "correct it or move it away, then refresh"
_TOKEN_HINT = "leave that out: for private ones, the operator sets SKILLHALL_GIT_TOKEN_REPOS"  # noqa: S105 - not a secret


def parse_followed(selector: SourceSelector, hosts: GitHosts) -> FollowedRepository:
    """What a call names, in one way of writing. Raises: SourceRejected."""
    repo = selector.repo.strip()
    if without_credentials(repo) != repo:
        raise SourceRejected(
            "url", repo, "it holds a user name, a password or a query", _TOKEN_HINT
        )
    found = parse_requested_repository(repo, selector.path.strip(), selector.branch.strip(), hosts)
    branch = "" if found.may_fall_back else found.reference.ref
    followed = FollowedRepository(found.reference.url, found.reference.path, branch)
    if max(map(len, followed)) > MAX_FIELD_LENGTH:
        raise SourceRejected("url", repo, "it is too long")
    return followed


def format_followed(followed: FollowedRepository) -> str:
    """What answers call it; whoever edits the file by hand may write a secret there."""
    return without_credentials(GitRef(*followed).text)


def to_repository(followed: FollowedRepository, hosts: GitHosts) -> Repository:
    """The repository that is followed. Raises: SourceRejected."""
    return parse_requested_repository(*followed, hosts)


class FollowedList:
    """The list in one file; several processes of one machine may share it."""

    def __init__(self, data_directory: str) -> None:
        self._folder = data_directory

    def read(self) -> tuple[FollowedRepository, ...]:
        """All of them, in the order they were added. Raises: ConfigInvalid, OSError."""
        try:
            root = open_root(self._folder)
        except FileNotFoundError:
            return ()
        try:
            data = read_below(root, RelativePath.parse(FILE), _MAX_FILE_BYTES)
        except SkillFileNotFound:
            return ()
        except (NotAFile, TooLarge, UnsafePath):
            raise _invalid_file_error("it is not a regular file of ordinary size") from None
        finally:
            root.close()
        return _parse_file(data)

    def add(self, followed: FollowedRepository) -> tuple[FollowedRepository, ...]:
        """Put one at the end; all of them. Raises: Conflict, FieldRefused, as `read`."""
        with self._edit_list() as those:
            check_can_add(followed, those)
            those.append(followed)
        return tuple(those)

    def remove(self, key: str) -> tuple[FollowedRepository, tuple[FollowedRepository, ...]]:
        """The one that is taken out, and those that stay. Raises: RecordNotFound, as `read`."""
        with self._edit_list() as those:
            found = next((one for one in those if one.key == key), None)
            if found is None:
                raise RecordNotFound("followed repository", key)
            those.remove(found)
        return found, tuple(those)

    @contextmanager
    def _edit_list(self) -> Iterator[list[FollowedRepository]]:
        """The list, kept from other processes and written when the block ends well."""
        os.makedirs(self._folder, exist_ok=True)
        with WritableFolder(self._folder) as folder, folder.lock():
            those = [*self.read()]
            yield those
            rows = [one._asdict() for one in those]
            text = json.dumps({"version": VERSION, "repositories": rows}, indent=2)
            folder.write_file(FILE, f"{text}\n".encode("ascii"), 0o600)


def check_can_add(followed: FollowedRepository, existing: Sequence[FollowedRepository]) -> None:
    """See that there is a place for this one. Raises: Conflict, FieldRefused."""
    if followed in existing:
        raise Conflict(
            format_followed(followed), "it is in the list; name another folder or branch of it"
        )
    if len(existing) >= MAX_FOLLOWED:
        raise FieldRefused("repository", f"{MAX_FOLLOWED} are followed already", "remove one first")


def _parse_file(data: bytes) -> tuple[FollowedRepository, ...]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _invalid_file_error("it is not JSON") from None
    fields = value if isinstance(value, dict) else {}
    rows = fields.get("repositories")
    if not isinstance(rows, list) or fields.get("version") != VERSION:
        raise _invalid_file_error(f"it holds no repositories of version {VERSION}")
    if len(rows) > MAX_FOLLOWED:
        raise _invalid_file_error(f"it holds more than {MAX_FOLLOWED} repositories")
    return tuple(dict.fromkeys(map(_parse_row, rows)))


def _parse_row(value: object) -> FollowedRepository:
    fields = value if isinstance(value, dict) else {}
    texts = [fields.get(name, "") for name in FollowedRepository._fields]
    if not texts[0] or not all(
        isinstance(one, str) and len(one) <= MAX_FIELD_LENGTH for one in texts
    ):
        raise _invalid_file_error("one of its rows names no repository")
    return FollowedRepository(*texts)


def _invalid_file_error(problem: str) -> ConfigInvalid:
    return ConfigInvalid(FILE, problem, _FIX_HINT)
