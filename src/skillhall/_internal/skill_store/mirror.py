"""The mirror: shared skills as folders of this machine, for all that reads skills from folders.

```text
<cache>/shared/<database>/<id>/…      whole skills; what stands there is compared before it is kept
```
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import threading
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.background import PollingThread
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.scan_rules import STAGING_PREFIX
from skillhall._internal.skill_store.folder_store import ALL_FILES_SCAN
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.storage.ports import (
    DATABASE_RESTORED,
    SKILL_CHANGED,
    SKILL_DELETED,
)
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from skillhall._internal.storage.ports import SharedSkillReader, SharedSkillTable
    from skillhall._internal.storage.records import Event, SharedSkill

POLL_INTERVAL = 30.0  # seconds between looks that no event asks for
RETRY_INTERVAL = 1.0  # seconds after a look that failed
EXECUTABLE_BIT = 0o100  # the bit of a mode
_THREAD_NAME = "skillhall-mirror"


class _MirroredSkill(NamedTuple):
    """A shared skill as it was mirrored: its version, and what changes with its files alone."""

    version: int
    digest: str


class _SyncPlan(NamedTuple):
    """What one look found, by id."""

    ids: AbstractSet[str]
    mirrored: dict[str, _MirroredSkill]
    staged_folders: dict[str, str]  # the names of folders that wait


class SkillMirror:
    """The folders of one machine, brought up to date by a thread of their own; `close` it.

    While the database cannot be reached, what was mirrored last stays.
    """

    def __init__(
        self, store: SharedSkillTable, folder: str, *, retry_interval: float = RETRY_INTERVAL
    ) -> None:
        self.folder = folder
        self._retry_interval = retry_interval
        self._store = store
        self._refresh_lock = threading.Lock()  # one brings it up to date at a time
        self._folder_lock = threading.Lock()  # folders are exchanged, or listed
        self._mirrored: Mapping[str, _MirroredSkill] = {}
        self._revision = ""
        self._is_stale = True
        self._needs_full_sync = False  # whether a version may stand for something else now
        self._polling_thread = PollingThread(self.try_refresh, self._get_interval, _THREAD_NAME)

    @property
    def revision(self) -> str:
        """The same text on all machines that have the same skills; "" before the first look."""
        if not os.path.isdir(self.folder) and self._mirrored:  # people may clear caches at any time
            self._needs_full_sync = True
            self._polling_thread.wake()
        return self._revision

    def handle_events(self, events: Sequence[Event]) -> None:
        """Look at once if events tell of skills, or if nobody knows what they would have told."""
        kinds = {one.kind for one in events}
        if DATABASE_RESTORED in kinds:
            self._needs_full_sync = True
        if not kinds or kinds & {SKILL_CHANGED, SKILL_DELETED, DATABASE_RESTORED}:
            self._polling_thread.wake()

    @contextlib.contextmanager
    def lock_folders(self) -> Iterator[None]:
        """Keep the folders as they are, all of one moment; only to list them."""
        with self._folder_lock:
            yield

    def try_refresh(self) -> None:
        """Bring the folders up to date; what cannot be done is tried again soon."""
        try:
            self.refresh()
        except Exception:  # noqa: BLE001 - whatever it is, the thread must go on looking
            self._is_stale = True

    def refresh(self) -> None:
        """Bring the folders up to date. Raises: DatabaseUnavailable, OSError."""
        with self._refresh_lock:
            if self._needs_full_sync:
                self._mirrored, self._needs_full_sync = {}, False
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            with WritableFolder(self.folder) as target, target.lock():
                target.recover()
                look = self._store.read(lambda read: self._plan_sync(target, read))
                with self._folder_lock:
                    _swap_folders(target, look.staged_folders, set(target.list_names()) - look.ids)
                    self._mirrored, self._is_stale = look.mirrored, False
                    self._revision = _compute_digest(one.digest for one in look.mirrored.values())
                target.recover()  # removes what was exchanged

    def close(self) -> None:
        """Look no more."""
        self._polling_thread.close()

    def _get_interval(self) -> float:
        return self._retry_interval if self._is_stale else POLL_INTERVAL

    def _plan_sync(self, target: WritableFolder, reader: SharedSkillReader) -> _SyncPlan:
        """What is there at one moment; what is new waits in folders to be put in place."""
        target.recover()  # if this is done again, what was staged before is of another moment
        versions = reader.versions()
        look = _SyncPlan(versions.keys(), {}, {})
        for identity, version in sorted(versions.items()):
            known = self._mirrored.get(identity)
            if known is not None and known.version == version:
                look.mirrored[identity] = known
                continue
            # One that this disk cannot hold must not keep the others away; it is tried again.
            with contextlib.suppress(OSError):
                self._stage_if_changed(identity, target, reader, look)
        return look

    def _stage_if_changed(
        self, identity: str, target: WritableFolder, reader: SharedSkillReader, plan: _SyncPlan
    ) -> None:
        skill = reader.find(identity)
        if skill is not None:
            if not self._is_mirrored(skill):
                plan.staged_folders[identity] = _stage_skill(target, skill, reader)
            plan.mirrored[identity] = _MirroredSkill(
                skill.version, _compute_digest([identity, *_describe_files(skill)])
            )

    def _is_mirrored(self, skill: SharedSkill) -> bool:
        """Whether its folder holds the same bytes already."""
        try:
            bundle = open_bundle(FolderHandle(self.folder, skill.id), ALL_FILES_SCAN)
            found = {p: (f.digest(), f.executable) for p, f in bundle.files.items()}
        except (SkillhallError, OSError):
            return False
        return found == {
            path: (f"sha256:{file.digest}", bool(file.mode & EXECUTABLE_BIT))
            for path, file in skill.files.items()
        }


def _stage_skill(target: WritableFolder, skill: SharedSkill, reader: SharedSkillReader) -> str:
    """The name of a folder that holds the skill, and waits."""
    name = f"{STAGING_PREFIX}{secrets.token_hex(8)}"
    files = {
        path: (reader.read_blob(one.digest) or b"", one.mode) for path, one in skill.files.items()
    }
    # Nothing is synced: what a crash leaves is compared at the next start.
    target.create_folder(name, files, fsync=False)
    return name


def _swap_folders(target: WritableFolder, staged: Mapping[str, str], removed: set[str]) -> None:
    for identity, temporary in staged.items():
        if target.entry_kind(identity) is None:
            target.rename(temporary, identity)
        else:
            target.exchange_folder(identity, temporary)
            target.remove_replaced(identity)
    for name in removed:
        if not name.startswith(STAGING_PREFIX):
            target.rename(name, f"{STAGING_PREFIX}{secrets.token_hex(8)}")


def _describe_files(skill: SharedSkill) -> Iterator[str]:
    return (f"{one.digest} {one.mode} {path}" for path, one in skill.files.items())


def _compute_digest(texts: Iterable[str]) -> str:
    return hashlib.sha256(repr([*texts]).encode()).hexdigest()
