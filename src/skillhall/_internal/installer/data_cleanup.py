"""Cleanup of the data folder: unreferenced file contents and unfinished files.

Contents are referenced by the histories in the data folder and by the lock files of projects with a
history. References can appear at any time, but contents are stored or marked as used before they
are referenced. Contents younger than `CONTENT_RETENTION` are therefore never removed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.lock import (
    PROJECT_LOCK,
    USER_LOCK,
    get_user_lock_folder,
    read_lock_data,
)
from skillhall._internal.policy.trust.trust_decision import EVERYWHERE
from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.history import (
    delete_scope,
    find_digests,
    find_referenced_digests,
    list_scopes,
)
from skillhall._internal.storage.trust_store import TrustStore
from skillhall.errors import SkillhallError

_DAY = 24 * 60 * 60.0  # seconds
CLEANUP_INTERVAL = _DAY
CONTENT_RETENTION = 30 * _DAY  # for unreferenced contents
HISTORY_RETENTION = 90 * _DAY  # after the last change of a project that no longer exists
UNFINISHED_RETENTION = _DAY  # for files of killed processes
_LAST_RUN_FILE = "swept"  # its modification time is the time of the last cleanup


class CleanupReport(NamedTuple):
    """Number of removed contents and histories."""

    contents: int
    histories: int


def clean_up_if_due(directory: str, clock: Callable[[], float] = time.time) -> CleanupReport | None:
    """Clean up the data folder if the last cleanup was over a day ago.

    Returns `None` if no cleanup was due, or if it failed: errors are ignored.
    """
    marker, now = os.path.join(directory, _LAST_RUN_FILE), clock()
    try:
        if not os.path.isdir(directory):
            return None
        # In a new data folder, nothing is old enough to be removed.
        is_new = not os.path.lexists(marker)
        last_run = now if is_new else os.lstat(marker).st_mtime
        # A time in the future means that the clock was changed.
        is_due = not now - CLEANUP_INTERVAL < last_run <= now
        if is_new or is_due:
            with open(marker, "ab"):
                os.utime(marker, (now, now))
        return clean_up_data(directory, clock) if is_due else None
    except (OSError, SkillhallError):
        return None  # an unreadable history may reference any content


def clean_up_data(directory: str, clock: Callable[[], float] = time.time) -> CleanupReport:
    """Clean up the data folder; safe while other processes use it.

    Raises: OSError, NotAFile, TooLarge if a history cannot be read.
    """
    histories = 0
    referenced: set[str] = set()
    for name, (scope, changed) in list_scopes(directory).items():
        # The scope of a skill store is the name "local" in its folder, which need not exist.
        root = os.path.dirname(scope) if os.path.basename(scope) == "local" else scope
        if changed < clock() - HISTORY_RETENTION and not os.path.exists(root):
            delete_scope(directory, name)
            histories += 1
            continue
        for lock in ((scope, PROJECT_LOCK), (get_user_lock_folder(scope), USER_LOCK)):
            with suppress(OSError, SkillhallError):
                referenced |= find_digests(read_lock_data(*lock) or b"")
    referenced |= find_referenced_digests(directory)
    with suppress(OSError, SkillhallError):
        for approval in TrustStore(directory).read().approvals:
            if approval.where == EVERYWHERE or os.path.isdir(approval.where):
                referenced |= {file.sha256 for file in approval.files.values()}
    contents = ContentStore(directory).sweep(referenced, CONTENT_RETENTION, clock)
    for path in (directory, os.path.join(directory, "history")):
        if os.path.isdir(path):
            with WritableFolder(path) as folder, folder.lock():
                folder.remove_stale_staging(clock() - UNFINISHED_RETENTION)
    return CleanupReport(contents, histories)
