"""Thread that seals new rows of the audit log, verifies it and deletes old rows."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from skillhall._internal.background import PollingThread
from skillhall._internal.storage.audit.audit_chain import (
    ChainHead,
    prune_rows,
    seal_rows,
    verify_chain,
)
from skillhall._internal.storage.sql.tables import audit
from skillhall.errors import ConfigInvalid, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from skillhall._internal.storage.sql.engine import Database

_MAX_RETENTION = 36_500  # days
_POLL_INTERVAL = 5.0  # seconds between polls, for rows of commands
_SEAL_DELAY = 0.3  # seconds after a change
_HOUR = 3600.0  # seconds
_VERIFIED_PER_HOUR = 100_000  # rows; verifying them takes about two seconds of CPU time
_VERIFY_DELAY = 10.0  # seconds after the start
_LOG = logging.getLogger("skillhall.server")


class AuditSealer:
    """Seals the rows of the audit log within a second. Call `close` when done.

    It never waits for other servers, and writers never wait for it.
    """

    def __init__(
        self,
        database: Database,
        retention: int = 400,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`retention` is in days; older rows are deleted."""
        self._database = database
        self._retention = retention
        self._clock = clock
        self._head = ChainHead()
        self._logged_at = self._pruned_at = 0.0
        self._verify_at = clock() + _VERIFY_DELAY
        self._is_changed = False
        self._stop = threading.Event()
        self.problem = ""  # why the chain is broken, as far as is known
        self._thread = PollingThread(self._poll, self._seconds_until_poll, "skillhall-audit")
        self._stop_listening = database.on_change(self.wake)

    def wake(self, *_: object) -> None:
        """Seal new rows soon. Never blocks."""
        if not self._is_changed:
            self._is_changed = True
            self._thread.wake()

    def close(self) -> None:
        """Seal the last rows and stop. Idempotent."""
        self._stop_listening()
        is_open = not self._stop.is_set()
        self._stop.set()
        self._thread.close()
        if is_open:
            self._seal()

    def _seconds_until_poll(self) -> float:
        return _SEAL_DELAY if self._is_changed else _POLL_INTERVAL

    def _poll(self) -> None:
        """Run the tasks that are due. Never raises; failed tasks are retried."""
        if self._is_changed:
            self._stop.wait(_SEAL_DELAY)  # one transaction then seals many rows
        self._is_changed = False
        self._seal()
        now = self._clock()
        try:
            if now >= self._verify_at:
                # Longer logs are verified less often.
                self._verify_at = now + _HOUR * (1 + self._head.position // _VERIFIED_PER_HOUR)
                self.verify()
            if now - self._logged_at >= _HOUR and self._head.position:
                self._logged_at = now
                _LOG.info(
                    "audit log: %d rows, newest hash %s", self._head.position, self._head.hash
                )
            if now - self._pruned_at >= _HOUR:
                self._pruned_at = now
                self.prune()
        except Exception:  # noqa: BLE001 - the thread must survive any error
            _LOG.warning("the audit log cannot be checked: the database does not respond")

    def _seal(self) -> None:
        try:
            head = seal_new_rows(self._database, self._head)
        except Exception:  # noqa: BLE001 - the thread must survive any error, and tries again
            return
        if head is None:
            self._is_changed = True
        else:
            self._head = head

    def verify(self) -> None:
        """Verify the chain and log a problem. Raises: DatabaseUnavailable."""
        report = self._database.read(verify_chain)
        self.problem = report.problem and f"row {report.broken_row}: {report.problem}"
        if self.problem:
            _LOG.error("the audit log is broken at %s", self.problem)

    def prune(self) -> None:
        """Delete rows that are older than the retention. Raises: DatabaseUnavailable."""
        now = datetime.fromtimestamp(self._clock(), UTC)
        before = (now - timedelta(days=self._retention)).date().isoformat()
        at = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._database.write(lambda connection: prune_rows(connection, before, at))


def seal_on_close(database: Database) -> Callable[[], None]:
    """Return a function that seals this process's rows and closes the database.

    For commands, since no server may be running. Rows that cannot be sealed now are sealed by the
    next command or server.
    """
    writes: list[None] = []
    stop_listening = database.on_change(lambda: writes.append(None))

    def close() -> None:
        stop_listening()
        if writes:
            with suppress(SkillhallError):
                seal_new_rows(database, ChainHead())
        database.close()

    return close


def seal_new_rows(database: Database, head: ChainHead) -> ChainHead | None:
    """Seal all rows after the seal `head`, which may be old; return the last seal.

    Returns None if a server is sealing; that server may not see the last rows.
    Raises: DatabaseUnavailable, DatabaseFull.
    """
    # After a restore, the last row may have a lower number than before.
    while database.read(_read_last_row) != head.row:
        sealed = database.write(seal_rows)
        if sealed is None or sealed == head:
            return sealed
        head = sealed
    return head


def parse_retention(text: str) -> int:
    """Parse the number of days. Raises: ConfigInvalid."""
    if text.isascii() and text.isdigit() and 0 < int(text[:6]) <= _MAX_RETENTION:
        return int(text)
    problem = f"{text!r} is not a number of days"
    hint = f"use a number from 1 to {_MAX_RETENTION}"
    raise ConfigInvalid("SKILLHALL_AUDIT_RETENTION", problem, hint)


def _read_last_row(connection: Connection) -> int:
    return int(connection.execute(select(func.max(audit.c.id))).scalar() or 0)
