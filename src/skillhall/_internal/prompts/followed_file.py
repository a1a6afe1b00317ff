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

from skillhall._internal.fs.handles import open_root, read_beneath
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.prompts.prompt_model import Followed
from skillhall._internal.prompts.repo_source import asked_repository
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

    from skillhall._internal.prompts.prompt_model import Asked
    from skillhall._internal.prompts.repo_source import GitHosts, Repository

FILE = "followed.json"
VERSION = 1
MAX_FOLLOWED = 20
MAX_TEXT = 1000  # characters of an address or a path
_LONGEST = 128 * 1024  # bytes of the file
_MEND = "correct it or move it away, then refresh"
_TOKENS = "leave that out: for private ones, the operator sets SKILLHALL_GIT_TOKEN_REPOS"


def checked_followed(asked: Asked, hosts: GitHosts) -> Followed:
    """What a call names, in one way of writing. Raises: SourceRejected."""
    repo = asked.repo.strip()
    if without_credentials(repo) != repo:
        raise SourceRejected("url", repo, "it holds a user name, a password or a query", _TOKENS)
    found = asked_repository(repo, asked.path.strip(), asked.branch.strip(), hosts)
    branch = "" if found.may_fall_back else found.reference.ref
    followed = Followed(found.reference.url, found.reference.path, branch)
    if max(map(len, followed)) > MAX_TEXT:
        raise SourceRejected("url", repo, "it is too long")
    return followed


def name_of(followed: Followed) -> str:
    """What answers call it; whoever edits the file by hand may write a secret there."""
    return without_credentials(GitRef(*followed).text)


def repository_of(followed: Followed, hosts: GitHosts) -> Repository:
    """The repository that is followed. Raises: SourceRejected."""
    return asked_repository(*followed, hosts)


class FollowedList:
    """The list in one file; several processes of one machine may share it."""

    def __init__(self, data_directory: str) -> None:
        self._folder = data_directory

    def read(self) -> tuple[Followed, ...]:
        """All of them, in the order they were added. Raises: ConfigInvalid, OSError."""
        try:
            root = open_root(self._folder)
        except FileNotFoundError:
            return ()
        try:
            data = read_beneath(root, RelativePath.parse(FILE), _LONGEST)
        except SkillFileNotFound:
            return ()
        except (NotAFile, TooLarge, UnsafePath):
            raise _broken("it is not a regular file of ordinary size") from None
        finally:
            root.close()
        return _parsed(data)

    def add(self, followed: Followed) -> tuple[Followed, ...]:
        """Put one at the end; all of them. Raises: Conflict, FieldRefused, as `read`."""
        with self._changing() as those:
            refuse_more(followed, those)
            those.append(followed)
        return tuple(those)

    def remove(self, key: str) -> tuple[Followed, tuple[Followed, ...]]:
        """The one that is taken out, and those that stay. Raises: RecordNotFound, as `read`."""
        with self._changing() as those:
            found = next((one for one in those if one.key == key), None)
            if found is None:
                raise RecordNotFound("followed repository", key)
            those.remove(found)
        return found, tuple(those)

    @contextmanager
    def _changing(self) -> Iterator[list[Followed]]:
        """The list, kept from other processes and written when the block ends well."""
        os.makedirs(self._folder, exist_ok=True)
        with WritableFolder(self._folder) as folder, folder.locked():
            those = [*self.read()]
            yield those
            rows = [one._asdict() for one in those]
            text = json.dumps({"version": VERSION, "repositories": rows}, indent=2)
            folder.put(FILE, f"{text}\n".encode("ascii"), 0o600)


def refuse_more(followed: Followed, those: Sequence[Followed]) -> None:
    """See that there is a place for this one. Raises: Conflict, FieldRefused."""
    if followed in those:
        raise Conflict(name_of(followed), "it is in the list; name another folder or branch of it")
    if len(those) >= MAX_FOLLOWED:
        raise FieldRefused("repository", f"{MAX_FOLLOWED} are followed already", "remove one first")


def _parsed(data: bytes) -> tuple[Followed, ...]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _broken("it is not JSON") from None
    fields = value if isinstance(value, dict) else {}
    rows = fields.get("repositories")
    if not isinstance(rows, list) or fields.get("version") != VERSION:
        raise _broken(f"it holds no repositories of version {VERSION}")
    if len(rows) > MAX_FOLLOWED:
        raise _broken(f"it holds more than {MAX_FOLLOWED} repositories")
    return tuple(dict.fromkeys(map(_row, rows)))


def _row(value: object) -> Followed:
    fields = value if isinstance(value, dict) else {}
    texts = [fields.get(name, "") for name in Followed._fields]
    if not texts[0] or not all(isinstance(one, str) and len(one) <= MAX_TEXT for one in texts):
        raise _broken("one of its rows names no repository")
    return Followed(*texts)


def _broken(problem: str) -> ConfigInvalid:
    return ConfigInvalid(FILE, problem, _MEND)
