"""Refused requests and failed sign-ins in the audit log, limited in number."""

from __future__ import annotations

import contextlib
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.background import PollingThread
from skillhall._internal.storage.sql.audit_rows import add_audit_row, format_audit_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.sql.engine import Database

_WINDOW = 3600.0  # seconds
MAX_ROWS = 200  # distinct refusals in a window; further ones are only counted
_RETRY_INTERVAL = 5.0  # seconds


class _Refusal(NamedTuple):
    actor: Actor
    action: str
    subject: str
    at: str
    detail: Mapping[str, object]

    @property
    def key(self) -> tuple[str, ...]:
        """The fields that equal refusals share: all but time, request and details."""
        return (*self.actor._replace(request_id=""), self.action, self.subject)


class RefusalLog:
    """Records refused requests in a background thread. Call `close` when done.

    Equal refusals get one row per hour, and one more with the number of repetitions, so that an
    attacker cannot fill the log. A request never waits.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._started = clock()
        self._counts: dict[tuple[str, ...], tuple[_Refusal, int]] = {}
        self._dropped: tuple[_Refusal, int] | None = None
        self._pending: list[_Refusal] = []
        self._thread = PollingThread(
            self._write,
            lambda: _RETRY_INTERVAL if self._pending else None,
            "skillhall-refusals",
        )

    def record(self, actor: Actor, action: str, subject: str = "", **detail: object) -> None:
        """Record that a request was refused. Never blocks."""
        now = self._clock()
        at = format_audit_time(datetime.fromtimestamp(now, UTC))
        refusal = _Refusal(actor, action, subject, at, detail)
        with self._lock:
            if not 0 <= now - self._started < _WINDOW:
                self._end_window()
                self._started = now
            first, count = self._counts.get(refusal.key, (refusal, 0))
            if count or len(self._counts) < MAX_ROWS:
                self._counts[refusal.key] = first, count + 1
            else:
                self._dropped = refusal, (self._dropped[1] if self._dropped else 0) + 1
            if not count and refusal.key in self._counts:
                self._pending.append(refusal)
        self._thread.wake()

    def close(self) -> None:
        """Write pending refusals and stop. Idempotent."""
        with self._lock:
            self._end_window()
        self._thread.close()
        self._write()

    def _end_window(self) -> None:
        """Add rows that count the refusals without a row of their own."""
        for refusal, count in self._counts.values():
            if count > 1:
                self._pending.append(refusal._replace(detail={"repeated": count - 1}))
        if self._dropped is not None:
            refusal, count = self._dropped
            self._pending.append(refusal._replace(detail={"others": count}))
        self._counts, self._dropped = {}, None

    def _write(self) -> None:
        with self._lock:
            pending = [*self._pending]
        if not pending:
            return

        def work(connection: Connection) -> None:
            for actor, action, subject, at, detail in pending:
                add_audit_row(
                    connection, actor, action, subject, at=at, outcome="refused", detail=detail
                )

        with contextlib.suppress(Exception):  # the thread must survive any error, and tries again
            self._database.write(work)
            with self._lock:
                del self._pending[: len(pending)]
