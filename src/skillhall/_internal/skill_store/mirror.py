"""Mirror: skills of a shared database as local folders.

Skills are always read from folders, so those in the database are copied to
`<cache>/shared/<database>/<id>/`. A folder from an earlier run is compared with the database before
it is reused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import threading
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from skillhall._internal.background import PollingThread
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.folder_walk_rules import STAGING_PREFIX
from skillhall._internal.skill_store.store import ALL_FILES_SCAN
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.storage.records import DATABASE_RESTORED, SKILL_CHANGED, SKILL_DELETED
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from skillhall._internal.storage.records import Event, SharedSkill, VersionReview
    from skillhall._internal.storage.sql.skill_rows import SharedSkillReader

_T = TypeVar("_T")
POLL_INTERVAL = 30.0  # seconds, without an event
RETRY_INTERVAL = 1.0  # seconds, after a failure
EXECUTABLE_BIT = 0o100
_THREAD_NAME = "skillhall-mirror"


class _MirroredSkill(NamedTuple):
    """Version of a mirrored skill, and the digest of its files."""

    version: int
    digest: str


class _SyncPlan(NamedTuple):
    """Changes found by one poll, by skill id."""

    ids: AbstractSet[str]
    mirrored: dict[str, _MirroredSkill]
    staged_folders: dict[str, str]  # temporary folder names
    approvals: Mapping[str, VersionReview]


class MirroredSkills(Protocol):
    """Skills in the database that are served."""

    def read_served(self, work: Callable[[SharedSkillReader], _T]) -> _T:
        """Run a read transaction. Raises: DatabaseUnavailable."""


class SkillMirror:
    """Local folders with the database's skills. Call `close` when done.

    A polling thread updates the folders. While the database is unavailable, the last mirrored
    skills remain.
    """

    def __init__(
        self,
        store: MirroredSkills,
        folder: str,
        *,
        retry_interval: float = RETRY_INTERVAL,
    ) -> None:
        self.folder = folder
        self._prepare: Callable[[], None] = lambda: None
        self._retry_interval = retry_interval
        self._store = store
        self._refresh_lock = threading.Lock()  # one refresh at a time
        self.folder_lock = threading.Lock()  # hold it while the folders are listed
        self._mirrored: Mapping[str, _MirroredSkill] = {}
        self._revision = ""
        self.approvals: Mapping[str, VersionReview] = {}  # of the mirrored versions, by skill id
        # Called with the ids of changed skills, while the folder lock is held.
        self.on_change: Callable[[Iterable[str]], None] = lambda _: None
        self._is_stale = True
        self._needs_full_sync = True  # whether known versions are not reliable
        self._polling_thread = PollingThread(
            self.try_refresh,
            lambda: self._retry_interval if self._is_stale else POLL_INTERVAL,
            _THREAD_NAME,
        )

    @property
    def revision(self) -> str:
        """Revision, equal on all machines with the same skills; "" before the first poll."""
        if not os.path.isdir(self.folder) and self._mirrored:  # the cache was cleared
            self._needs_full_sync = True
            self._polling_thread.wake()
        return self._revision

    def prepare_with(self, prepare: Callable[[], None]) -> None:
        """Call `prepare` before the next refresh, and again after a restore."""
        self._prepare = prepare
        self._needs_full_sync = True

    def handle_events(self, events: Sequence[Event]) -> None:
        """Poll immediately if an event concerns skills.

        An empty sequence means that events were missed, which also triggers a poll.
        """
        kinds = {event.kind for event in events}
        if DATABASE_RESTORED in kinds:
            self._needs_full_sync = True
        if not kinds or kinds & {SKILL_CHANGED, SKILL_DELETED, DATABASE_RESTORED}:
            self._polling_thread.wake()

    def try_refresh(self) -> None:
        """Update the folders; a failure is retried soon."""
        try:
            self.refresh()
        except Exception:  # noqa: BLE001 - the polling thread must survive any error
            self._is_stale = True

    def refresh(self) -> None:
        """Update the folders. Raises: DatabaseUnavailable, OSError."""
        with self._refresh_lock:
            if self._needs_full_sync:
                self._prepare()
                self._mirrored, self._needs_full_sync = {}, False
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            with WritableFolder(self.folder) as target, target.lock():
                target.recover()
                plan = self._store.read_served(lambda reader: self._plan_sync(target, reader))
                with self.folder_lock:
                    for identity, staged_name in plan.staged_folders.items():
                        if target.entry_kind(identity) is None:
                            target.rename(staged_name, identity)
                        else:
                            target.exchange_folder(identity, staged_name)
                            target.remove_replaced(identity)
                    removed = [
                        name
                        for name in set(target.list_names()) - plan.ids
                        if not name.startswith(STAGING_PREFIX)
                    ]
                    for name in removed:
                        # Renaming is fast; deleting under the lock would block readers.
                        target.rename(name, _new_staging_name())
                    # Before the revision changes: it must not be seen together with the old skills.
                    # Another process may have written the folders, so the contents are compared.
                    self.on_change(
                        [
                            *removed,
                            *plan.staged_folders,
                            *dict(plan.mirrored.items() ^ self._mirrored.items()),
                        ]
                    )
                    self._mirrored, self._is_stale = plan.mirrored, False
                    self.approvals = plan.approvals
                    digests = [skill.digest for skill in plan.mirrored.values()]
                    self._revision = _compute_digest(digests)
                target.recover()  # deletes the replaced and removed folders

    def close(self) -> None:
        """Stop polling."""
        self._polling_thread.close()

    def _plan_sync(self, target: WritableFolder, reader: SharedSkillReader) -> _SyncPlan:
        """Compare the database with the mirror; stage changed skills in temporary folders."""
        target.recover()  # the transaction may be retried: drop folders staged by the last try
        versions = reader.versions()
        plan = _SyncPlan(versions.keys(), {}, {}, reader.list_approvals())
        for identity, version in sorted(versions.items()):
            known = self._mirrored.get(identity)
            if known is not None and known.version == version:
                plan.mirrored[identity] = known
                continue
            skill = reader.find(identity)
            if skill is None:
                continue
            # A skill that cannot be written must not block the others. The next poll retries it.
            with contextlib.suppress(OSError):
                name = identity
                if not self._is_mirrored(skill):
                    name = _new_staging_name()
                    contents = {
                        path: (reader.read_blob(file.digest) or b"", file.mode)
                        for path, file in skill.files.items()
                    }
                    # No fsync: after a crash, the next start compares the content.
                    target.create_folder(name, contents, fsync=False)
                    plan.staged_folders[identity] = name
                _set_times(os.path.join(self.folder, name), skill)
                files = (f"{f.digest} {f.mode} {path}" for path, f in skill.files.items())
                digest = _compute_digest([identity, *files])
                plan.mirrored[identity] = _MirroredSkill(skill.version, digest)
        return plan

    def _is_mirrored(self, skill: SharedSkill) -> bool:
        """Whether the skill's folder already has the content in the database."""
        try:
            bundle = open_bundle(FolderHandle(self.folder, skill.id), ALL_FILES_SCAN)
            present = {p: (f.digest(), f.executable) for p, f in bundle.files.items()}
        except (SkillhallError, OSError):
            return False
        return present == {
            path: (f"sha256:{file.digest}", bool(file.mode & EXECUTABLE_BIT))
            for path, file in skill.files.items()
        }


def _set_times(folder: str, skill: SharedSkill) -> None:
    """Set the modification times of files, which clients see, from the database.

    Raises: OSError.
    """
    for path in skill.files:
        file, time = os.path.join(folder, *path.split("/")), skill.modified(path)
        if os.lstat(file).st_mtime_ns != time:
            os.utime(file, ns=(time, time), follow_symlinks=False)


def _new_staging_name() -> str:
    return f"{STAGING_PREFIX}{secrets.token_hex(8)}"


def _compute_digest(texts: Iterable[str]) -> str:
    return hashlib.sha256(repr([*texts]).encode()).hexdigest()
