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
from typing import TYPE_CHECKING

from skillhall.errors import SkillFileNotFound
from skillhall.policy.profiles import LOCAL_SKILLS
from skillhall.sources.bundles import open_bundle
from skillhall.sources.safety import Place
from skillhall.sources.watching import Watch
from skillhall.sources.writing import STAGED, WritableFolder
from skillhall.storage.shared_port import SKILL_CHANGED, SKILL_DELETED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall.storage.records import Event, SharedSkill
    from skillhall.storage.shared_port import SharedReading, SharedSkills

EVERY_FILE = LOCAL_SKILLS.scan._replace(hidden_in_bundles=True)
LOOK = 30.0  # seconds between looks that no event asks for
RETRY = 1.0  # seconds after a look that failed
_EXECUTABLE = 0o100
_THREAD = "skillhall-mirror"


class Mirror:
    """The folders of one machine, brought up to date by a thread of their own; `close` it.

    While the database cannot be reached, what was mirrored last stays.
    """

    def __init__(self, store: SharedSkills, folder: str) -> None:
        self.folder = folder
        self._store = store
        self._turn = threading.Lock()  # one brings it up to date at a time
        self._gate = threading.Lock()  # folders are exchanged, or listed
        self._known: Mapping[str, int] = {}
        self._revision = ""
        self._is_behind = True
        self._watch = Watch(self.catch_up, self._pause, _THREAD)

    @property
    def revision(self) -> str:
        """The same text on all machines that have the same skills; "" before the first look."""
        if not os.path.isdir(self.folder) and self._known:  # people may clear caches at any time
            self._known = {}
            self._watch.wake()
        return self._revision

    def hear(self, events: Sequence[Event]) -> None:
        """Look at once if events tell of skills, or if nobody knows what they would have told."""
        if not events or any(one.kind in (SKILL_CHANGED, SKILL_DELETED) for one in events):
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
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            with WritableFolder(self.folder) as target, target.locked():
                target.recover()
                versions, staged = self._store.look(lambda read: self._staged(target, read))
                with self._gate:
                    _exchange(target, staged, set(target.names()) - versions.keys())
                    self._known, self._is_behind = versions, False
                    self._revision = _digest(versions)
                target.recover()  # removes what was exchanged

    def close(self) -> None:
        """Look no more."""
        self._watch.close()

    def _pause(self) -> float:
        return RETRY if self._is_behind else LOOK

    def _staged(
        self, target: WritableFolder, read: SharedReading
    ) -> tuple[Mapping[str, int], Mapping[str, str]]:
        """The versions of one moment, and the folders that wait to be put in place, by id."""
        target.recover()  # if this is done again, what was staged before is of another moment
        versions = read.versions()
        staged: dict[str, str] = {}
        for identity, version in versions.items():
            skill = read.find(identity) if self._known.get(identity) != version else None
            if skill is not None and not self._has(skill):
                staged[identity] = f"{STAGED}{secrets.token_hex(8)}"
                files = {
                    path: (read.read(f.digest) or b"", f.mode) for path, f in skill.files.items()
                }
                # Nothing is synced: what a crash leaves is compared at the next start.
                target.put_folder(staged[identity], files, synced=False)
        return versions, staged

    def _has(self, skill: SharedSkill) -> bool:
        """Whether its folder holds the same bytes already."""
        try:
            bundle = open_bundle(Place(self.folder, skill.id), EVERY_FILE)
            found = {p: (f.digest(), f.executable) for p, f in bundle.files.items()}
        except SkillFileNotFound:
            return False
        return found == {
            path: (f"sha256:{file.digest}", bool(file.mode & _EXECUTABLE))
            for path, file in skill.files.items()
        }


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


def _digest(versions: Mapping[str, int]) -> str:
    return hashlib.sha256(repr(sorted(versions.items())).encode()).hexdigest()
