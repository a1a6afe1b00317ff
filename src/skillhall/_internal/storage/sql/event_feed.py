"""The feed: one thread that reads new events and hands them to everybody who asked for them."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from skillhall._internal.storage.ports import WorkspaceStore
    from skillhall._internal.storage.records import Event
    from skillhall._internal.storage.sql.event_signal import EventSignal

    Subscriber: TypeAlias = Callable[[Sequence[Event]], None]

BATCH = 500  # events that are read at once
_CLOSE_TIMEOUT = 5.0  # seconds that a database may take to answer when the feed is closed


class EventFeed:
    """Events as they come, of this process and of all others; `close` it.

    A listener is called in the feed's own thread, and must return at once. If the database was down
    when the feed began, listeners get an empty batch as soon as it is not: what came before that
    nobody told them.
    """

    def __init__(self, store: WorkspaceStore, signal: EventSignal) -> None:
        self._store = store
        self._signal = signal
        self._subscribers: dict[int, Subscriber] = {}
        self._lock = threading.Lock()
        self._last_id = 0
        self._stopped = threading.Event()
        self._last_seq: int | None = None
        with contextlib.suppress(SkillhallError):
            self._last_seq = self._read_last_seq()
        self._thread = threading.Thread(target=self._run, name="skillhall-events", daemon=True)
        self._thread.start()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Hand every event from now on to `listener`, until the answer is called."""
        with self._lock:
            self._last_id += 1
            number = self._last_id
            self._subscribers[number] = subscriber

        def stop() -> None:
            with self._lock:
                self._subscribers.pop(number, None)

        return stop

    def close(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join(_CLOSE_TIMEOUT)
        self._signal.close()

    def _run(self) -> None:
        is_behind = self._last_seq is None
        while not self._stopped.is_set():
            is_behind = self._signal.wait() or is_behind
            if is_behind:
                # Whatever goes wrong, a server must not stop hearing of the others.
                with contextlib.suppress(Exception):
                    self._deliver_new_events()
                    is_behind = False

    def _read_last_seq(self) -> int:
        return self._store.read(lambda read: read.event_range())[1]

    def _deliver_new_events(self) -> None:
        if self._last_seq is None:
            self._last_seq = self._read_last_seq()
            self._notify_subscribers(())
        while found := self._read_events_after(self._last_seq):
            self._last_seq = found[-1].seq
            self._notify_subscribers(found)

    def _read_events_after(self, seq: int) -> Sequence[Event]:
        return self._store.read(lambda read: read.events(seq, BATCH))

    def _notify_subscribers(self, events: Sequence[Event]) -> None:
        with self._lock:
            listeners = [*self._subscribers.values()]
        for listener in listeners:
            listener(events)
