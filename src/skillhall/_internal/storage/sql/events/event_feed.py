"""Event feed: one thread that reads new events and delivers them to subscribers."""

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
    from skillhall._internal.storage.sql.events.event_signal import (
        PostgresEventSignal,
        SqliteEventSignal,
    )

    Subscriber: TypeAlias = Callable[[Sequence[Event]], None]

BATCH = 500  # events per query
_CLOSE_TIMEOUT = 5.0  # seconds to wait for a running query


class EventFeed:
    """Events of this process and of all others. Call `close` when done.

    Subscribers are called in the feed's thread and must not block. If the database was down when
    the feed started, they get an empty batch once it is up, because earlier events were missed.
    """

    def __init__(
        self, store: WorkspaceStore, signal: SqliteEventSignal | PostgresEventSignal
    ) -> None:
        self._store = store
        self._signal = signal
        self._subscribers: dict[object, Subscriber] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._last_seq: int | None = None
        with contextlib.suppress(SkillhallError):
            self._last_seq = self._read_last_seq()
        self._thread = threading.Thread(target=self._run, name="skillhall-events", daemon=True)
        self._thread.start()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Pass new events to `subscriber`; return a function that unsubscribes it."""
        key = object()  # the same function may subscribe twice
        with self._lock:
            self._subscribers[key] = subscriber

        def stop() -> None:
            with self._lock:
                self._subscribers.pop(key, None)

        return stop

    def close(self) -> None:
        """Stop the thread and close the signal."""
        self._stopped.set()
        self._thread.join(_CLOSE_TIMEOUT)
        self._signal.close()

    def _run(self) -> None:
        is_behind = self._last_seq is None
        while not self._stopped.is_set():
            is_behind = self._signal.wait() or is_behind
            if is_behind:
                # The thread must survive any error; it tries again after the next wait.
                with contextlib.suppress(Exception):
                    self._deliver_new_events()
                    is_behind = False

    def _read_last_seq(self) -> int:
        return self._store.read(lambda read: read.event_range())[1]

    def _deliver_new_events(self) -> None:
        if self._last_seq is None:
            self._last_seq = self._read_last_seq()
            self._notify_subscribers(())
        while events := self._read_events_after(self._last_seq):
            self._last_seq = events[-1].seq
            self._notify_subscribers(events)

    def _read_events_after(self, seq: int) -> Sequence[Event]:
        return self._store.read(lambda read: read.events(seq, BATCH))

    def _notify_subscribers(self, events: Sequence[Event]) -> None:
        with self._lock:
            subscribers = [*self._subscribers.values()]
        for subscriber in subscribers:
            subscriber(events)
