"""The feed: one thread that reads new events and hands them to everybody who asked for them."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from skillhall._internal.storage.ports import Store
    from skillhall._internal.storage.records import Event
    from skillhall._internal.storage.sql.event_signal import Watch

    Listener: TypeAlias = Callable[[Sequence[Event]], None]

BATCH = 500  # events that are read at once
_PATIENCE = 5.0  # seconds that a database may take to answer when the feed is closed


class EventFeed:
    """Events as they come, of this process and of all others; `close` it.

    A listener is called in the feed's own thread, and must return at once. If the database was down
    when the feed began, listeners get an empty batch as soon as it is not: what came before that
    nobody told them.
    """

    def __init__(self, store: Store, watch: Watch) -> None:
        self._store = store
        self._watch = watch
        self._listeners: dict[int, Listener] = {}
        self._lock = threading.Lock()
        self._number = 0
        self._ended = threading.Event()
        self._last: int | None = None
        with contextlib.suppress(SkillhallError):
            self._last = self._newest()
        self._thread = threading.Thread(target=self._run, name="skillhall-events", daemon=True)
        self._thread.start()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hand every event from now on to `listener`, until the answer is called."""
        with self._lock:
            self._number += 1
            number = self._number
            self._listeners[number] = listener

        def stop() -> None:
            with self._lock:
                self._listeners.pop(number, None)

        return stop

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join(_PATIENCE)
        self._watch.close()

    def _run(self) -> None:
        is_behind = self._last is None
        while not self._ended.is_set():
            is_behind = self._watch.wait() or is_behind
            if is_behind:
                # Whatever goes wrong, a server must not stop hearing of the others.
                with contextlib.suppress(Exception):
                    self._tell()
                    is_behind = False

    def _newest(self) -> int:
        return self._store.read(lambda read: read.event_range())[1]

    def _tell(self) -> None:
        if self._last is None:
            self._last = self._newest()
            self._hand_out(())
        while found := self._after(self._last):
            self._last = found[-1].seq
            self._hand_out(found)

    def _after(self, seq: int) -> Sequence[Event]:
        return self._store.read(lambda read: read.events(seq, BATCH))

    def _hand_out(self, events: Sequence[Event]) -> None:
        with self._lock:
            listeners = [*self._listeners.values()]
        for listener in listeners:
            listener(events)
