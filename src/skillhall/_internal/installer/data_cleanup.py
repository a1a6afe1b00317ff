"""Sweeping a data folder: earlier versions that nothing refers to, and leftovers.

Contents are referred to by the histories in the data folder and by the locks of the projects that
have a history. A reference can appear at any time, but contents are always stored, or marked as
used, before they are referred to: what was stored within `GRACE` is never removed.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import open_root, read_beneath
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.lock import MAX_LOCK, PROJECT_LOCK, USER_LOCK, user_lock_folder
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.history import digests_in, forget_scope, known_scopes, referenced
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DAY = 24 * 60 * 60.0  # seconds
EVERY = _DAY  # between two sweeps
GRACE = 30 * _DAY  # for contents that nothing refers to
FORGOTTEN = 90 * _DAY  # for the history of a project that is gone, since its last change
UNFINISHED = _DAY  # for files that a process left unfinished
_MARK = "swept"  # a file whose time is that of the last sweep


class Swept(NamedTuple):
    """What a sweep removed."""

    contents: int
    histories: int


def sweep_when_due(directory: str, clock: Callable[[], float] = time.time) -> Swept | None:
    """Sweep the data folder if that was not done within a day. Never raises."""
    mark = os.path.join(directory, _MARK)
    try:
        if not os.path.isdir(directory) or not _is_due(mark, clock()):
            return None
        with open(mark, "ab"):
            os.utime(mark, (clock(), clock()))
        return sweep_data(directory, clock)
    except (OSError, SkillhallError):
        return None  # what cannot be read may be needed


def _is_due(mark: str, now: float) -> bool:
    try:
        last = os.lstat(mark).st_mtime
    except FileNotFoundError:
        return True
    return not now - EVERY < last <= now


def sweep_data(directory: str, clock: Callable[[], float] = time.time) -> Swept:
    """Sweep the data folder; safe while other processes use it.

    Raises: OSError, NotAFile, TooLarge if a history cannot be read.
    """
    histories = 0
    keep: set[str] = set()
    for name, (scope, changed) in known_scopes(directory).items():
        if changed < clock() - FORGOTTEN and not _is_there(scope):
            forget_scope(directory, name)
            histories += 1
        else:
            keep |= _locked_digests(scope)
    keep |= referenced(directory)
    contents = ContentStore(directory).sweep(keep, GRACE, clock)
    for folder in (directory, os.path.join(directory, "history")):
        _sweep_unfinished(folder, clock() - UNFINISHED)
    return Swept(contents, histories)


def _is_there(scope: str) -> bool:
    """Whether the project still exists; the scope of local skills is a name in their folder."""
    return os.path.exists(os.path.dirname(scope) if os.path.basename(scope) == "local" else scope)


def _locked_digests(scope: str) -> set[str]:
    """The digests in the locks of a project or a home."""
    return {digest for data in _locks(scope) for digest in digests_in(data)}


def _locks(scope: str) -> Iterator[bytes]:
    for folder, name in ((scope, PROJECT_LOCK), (user_lock_folder(scope), USER_LOCK)):
        try:
            root = open_root(folder)
        except OSError:
            continue
        try:
            yield read_beneath(root, RelativePath.parse(name), MAX_LOCK)
        except SkillhallError:
            continue
        finally:
            root.close()


def _sweep_unfinished(path: str, oldest: float) -> None:
    if os.path.isdir(path):
        with WritableFolder(path) as folder, folder.locked():
            folder.remove_unfinished(oldest)
