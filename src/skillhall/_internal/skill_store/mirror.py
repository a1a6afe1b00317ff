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

from skillhall._internal.background import Watch
from skillhall._internal.fs.handles import Place
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.scan_rules import STAGED
from skillhall._internal.skill_store.folder_store import EVERY_FILE
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

    from skillhall._internal.storage.ports import SharedReading, SharedSkills
    from skillhall._internal.storage.records import Event, SharedSkill

LOOK = 30.0  # seconds between looks that no event asks for
RETRY = 1.0  # seconds after a look that failed
EXECUTABLE = 0o100  # the bit of a mode
_THREAD = "skillhall-mirror"


class _Seen(NamedTuple):
    """A shared skill as it was mirrored: its version, and what changes with its files alone."""

    version: int
    digest: str


class _Look(NamedTuple):
    """What one look found, by id."""

    ids: AbstractSet[str]
    seen: dict[str, _Seen]
    staged: dict[str, str]  # the names of folders that wait


class Mirror:
    """The folders of one machine, brought up to date by a thread of their own; `close` it.

    While the database cannot be reached, what was mirrored last stays.
    """

    def __init__(self, store: SharedSkills, folder: str, *, retry: float = RETRY) -> None:
        self.folder = folder
        self._retry = retry
        self._store = store
        self._turn = threading.Lock()  # one brings it up to date at a time
        self._gate = threading.Lock()  # folders are exchanged, or listed
        self._known: Mapping[str, _Seen] = {}
        self._revision = ""
        self._is_behind = True
        self._is_doubted = False  # whether a version may stand for something else now
        self._watch = Watch(self.catch_up, self._pause, _THREAD)

    @property
    def revision(self) -> str:
        """The same text on all machines that have the same skills; "" before the first look."""
        if not os.path.isdir(self.folder) and self._known:  # people may clear caches at any time
            self._is_doubted = True
            self._watch.wake()
        return self._revision

    def hear(self, events: Sequence[Event]) -> None:
        """Look at once if events tell of skills, or if nobody knows what they would have told."""
        kinds = {one.kind for one in events}
        if DATABASE_RESTORED in kinds:
            self._is_doubted = True
        if not kinds or kinds & {SKILL_CHANGED, SKILL_DELETED, DATABASE_RESTORED}:
            self._watch.wake()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the folders as they are, all of one moment; only to list them."""
        with self._gate:
            yield

    def catch_up(self) -> None:
        """Bring the folders up to date; what cannot be done is tried again soon."""
        try:
            self.refresh()
        except Exception:  # noqa: BLE001 - whatever it is, the thread must go on looking
            self._is_behind = True

    def refresh(self) -> None:
        """Bring the folders up to date. Raises: DatabaseUnavailable, OSError."""
        with self._turn:
            if self._is_doubted:
                self._known, self._is_doubted = {}, False
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            with WritableFolder(self.folder) as target, target.locked():
                target.recover()
                look = self._store.look(lambda read: self._looked(target, read))
                with self._gate:
                    _exchange(target, look.staged, set(target.names()) - look.ids)
                    self._known, self._is_behind = look.seen, False
                    self._revision = _digest(one.digest for one in look.seen.values())
                target.recover()  # removes what was exchanged

    def close(self) -> None:
        """Look no more."""
        self._watch.close()

    def _pause(self) -> float:
        return self._retry if self._is_behind else LOOK

    def _looked(self, target: WritableFolder, read: SharedReading) -> _Look:
        """What is there at one moment; what is new waits in folders to be put in place."""
        target.recover()  # if this is done again, what was staged before is of another moment
        versions = read.versions()
        look = _Look(versions.keys(), {}, {})
        for identity, version in sorted(versions.items()):
            known = self._known.get(identity)
            if known is not None and known.version == version:
                look.seen[identity] = known
                continue
            # One that this disk cannot hold must not keep the others away; it is tried again.
            with contextlib.suppress(OSError):
                self._take(identity, target, read, look)
        return look

    def _take(
        self, identity: str, target: WritableFolder, read: SharedReading, look: _Look
    ) -> None:
        skill = read.find(identity)
        if skill is not None:
            if not self._has(skill):
                look.staged[identity] = _stage(target, skill, read)
            look.seen[identity] = _Seen(skill.version, _digest([identity, *_told(skill)]))

    def _has(self, skill: SharedSkill) -> bool:
        """Whether its folder holds the same bytes already."""
        try:
            bundle = open_bundle(Place(self.folder, skill.id), EVERY_FILE)
            found = {p: (f.digest(), f.executable) for p, f in bundle.files.items()}
        except (SkillhallError, OSError):
            return False
        return found == {
            path: (f"sha256:{file.digest}", bool(file.mode & EXECUTABLE))
            for path, file in skill.files.items()
        }


def _stage(target: WritableFolder, skill: SharedSkill, read: SharedReading) -> str:
    """The name of a folder that holds the skill, and waits."""
    name = f"{STAGED}{secrets.token_hex(8)}"
    files = {path: (read.read(one.digest) or b"", one.mode) for path, one in skill.files.items()}
    # Nothing is synced: what a crash leaves is compared at the next start.
    target.put_folder(name, files, synced=False)
    return name


def _exchange(target: WritableFolder, staged: Mapping[str, str], gone: set[str]) -> None:
    for identity, temporary in staged.items():
        if target.kind(identity) is None:
            target.rename(temporary, identity)
        else:
            target.trade_folder(identity, temporary)
            target.remove_aside(identity)
    for name in gone:
        if not name.startswith(STAGED):
            target.rename(name, f"{STAGED}{secrets.token_hex(8)}")


def _told(skill: SharedSkill) -> Iterator[str]:
    return (f"{one.digest} {one.mode} {path}" for path, one in skill.files.items())


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256(repr([*texts]).encode()).hexdigest()
