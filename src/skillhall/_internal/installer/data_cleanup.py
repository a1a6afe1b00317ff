"""Sweeping a data folder: earlier versions that nothing refers to, and leftovers.

Contents are referred to by the histories in the data folder and by the locks of the projects that
have a history. A reference can appear at any time, but contents are always stored, or marked as
used, before they are referred to: what was stored within `GRACE` is never removed.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.lock import (
    MAX_LOCK_SIZE,
    PROJECT_LOCK,
    USER_LOCK,
    get_user_lock_folder,
)
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.history import (
    delete_scope,
    find_digests,
    find_referenced_digests,
    list_scopes,
)
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DAY = 24 * 60 * 60.0  # seconds
CLEANUP_INTERVAL = _DAY  # between two sweeps
CONTENT_RETENTION = 30 * _DAY  # for contents that nothing refers to
HISTORY_RETENTION = 90 * _DAY  # for the history of a project that is gone, since its last change
UNFINISHED_RETENTION = _DAY  # for files that a process left unfinished
_LAST_RUN_FILE = "swept"  # a file whose time is that of the last sweep


class CleanupReport(NamedTuple):
    """What a sweep removed."""

    contents: int
    histories: int


def clean_up_if_due(directory: str, clock: Callable[[], float] = time.time) -> CleanupReport | None:
    """Sweep the data folder if that was not done within a day. Never raises."""
    mark = os.path.join(directory, _LAST_RUN_FILE)
    try:
        if not os.path.isdir(directory) or not _is_due(mark, clock()):
            return None
        with open(mark, "ab"):
            os.utime(mark, (clock(), clock()))
        return clean_up_data(directory, clock)
    except (OSError, SkillhallError):
        return None  # what cannot be read may be needed


def _is_due(mark: str, now: float) -> bool:
    try:
        last = os.lstat(mark).st_mtime
    except FileNotFoundError:
        return True
    return not now - CLEANUP_INTERVAL < last <= now


def clean_up_data(directory: str, clock: Callable[[], float] = time.time) -> CleanupReport:
    """Sweep the data folder; safe while other processes use it.

    Raises: OSError, NotAFile, TooLarge if a history cannot be read.
    """
    histories = 0
    keep: set[str] = set()
    for name, (scope, changed) in list_scopes(directory).items():
        if changed < clock() - HISTORY_RETENTION and not _scope_exists(scope):
            delete_scope(directory, name)
            histories += 1
        else:
            keep |= _read_locked_digests(scope)
    keep |= find_referenced_digests(directory)
    contents = ContentStore(directory).sweep(keep, CONTENT_RETENTION, clock)
    for folder in (directory, os.path.join(directory, "history")):
        _remove_unfinished(folder, clock() - UNFINISHED_RETENTION)
    return CleanupReport(contents, histories)


def _scope_exists(scope: str) -> bool:
    """Whether the project still exists; the scope of local skills is a name in their folder."""
    return os.path.exists(os.path.dirname(scope) if os.path.basename(scope) == "local" else scope)


def _read_locked_digests(scope: str) -> set[str]:
    """The digests in the locks of a project or a home."""
    return {digest for data in _read_locks(scope) for digest in find_digests(data)}


def _read_locks(scope: str) -> Iterator[bytes]:
    for folder, name in ((scope, PROJECT_LOCK), (get_user_lock_folder(scope), USER_LOCK)):
        try:
            root = open_root(folder)
        except OSError:
            continue
        try:
            yield read_below(root, RelativePath.parse(name), MAX_LOCK_SIZE)
        except SkillhallError:
            continue
        finally:
            root.close()


def _remove_unfinished(path: str, oldest: float) -> None:
    if os.path.isdir(path):
        with WritableFolder(path) as folder, folder.lock():
            folder.remove_stale_staging(oldest)
