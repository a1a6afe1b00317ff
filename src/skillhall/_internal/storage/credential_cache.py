"""Cache of credentials, and the recording of their use without delaying requests."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from skillhall._internal.background import PollingThread
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.records import (
    DATABASE_RESTORED,
    TOKENS_CHANGED,
    USE_INTERVAL,
    SignIn,
    StoredToken,
    StoredUser,
    parse_time,
)
from skillhall.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillhall._internal.storage.records import Event

POLL_INTERVAL = 30.0  # seconds between polls, if no event arrives
RETRY_INTERVAL = 1.0  # seconds until the next poll after a failure
OUTAGE_LIMIT = 15 * 60.0  # seconds that credentials are accepted without the database
_MIN_INTERVAL = 0.05  # seconds until the next poll if a credential is about to expire

_R = TypeVar("_R", bound=StoredToken | SignIn | StoredUser)
_R_co = TypeVar("_R_co", bound=StoredToken | SignIn | StoredUser, covariant=True)


class UseTable(Protocol):
    """Table that stores when its rows were used."""

    def record_uses(self, times: Mapping[str, float]) -> None:
        """Store the times of uses by id, in seconds since 1970."""


class CredentialTable(UseTable, Protocol[_R_co]):
    """Table of credentials."""

    def list(self) -> Sequence[_R_co]:
        """Return all credentials."""


class UseRecorder:
    """Records when credentials were last used, in a background thread. Call `close` when done.

    Each row is written at most once a minute. A use that cannot be written is dropped.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._recorded: dict[tuple[UseTable, str], float] = {}
        self._pending: dict[UseTable, dict[str, float]] = {}
        self._thread = PollingThread(self._write, lambda: None, "skillhall-uses")

    def record(self, table: UseTable, identity: str) -> None:
        """Record a use. Never blocks."""
        now, key = self._clock(), (table, identity)
        # Without the lock, since this is called for each request.
        if abs(now - self._recorded.get(key, 0.0)) < USE_INTERVAL:
            return
        with self._lock:
            self._recorded[key] = now
            self._pending.setdefault(table, {})[identity] = now
        self._thread.wake()

    def close(self) -> None:
        """Write the pending uses and stop."""
        self._thread.close()
        self._write()

    def _write(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, {}
            # Rows that were used a while ago may be gone.
            oldest = self._clock() - USE_INTERVAL
            self._recorded = {key: at for key, at in self._recorded.items() if at > oldest}
        for table, times in pending.items():
            with contextlib.suppress(Exception):  # the thread must survive any error
                table.record_uses(times)


class CredentialCache(Generic[_R]):
    """Cache of all rows of a table of credentials. Call `close` when done.

    While the database is unavailable, the last known credentials are returned for 15 minutes. After
    that, they could have been revoked long ago.
    """

    def __init__(
        self,
        table: CredentialTable[_R],
        recorder: UseRecorder,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._table = table
        self._recorder = recorder
        self._clock = clock
        self._refresh_lock = threading.Lock()
        self._by_digest: dict[str, _R] = {}
        self._by_id: dict[str, _R] = {}
        self._subscribers: tuple[Callable[[], None], ...] = ()
        self._is_stale = True
        self._refreshed_at = self._read_at = clock()
        self._was_outdated = False
        self._polling_thread = PollingThread(
            self.try_refresh, self._seconds_until_poll, "skillhall-credentials"
        )

    def find(self, text: bytes) -> _R | None:
        """Return the credential with this text, even if it has expired. Never blocks.

        Raises: DatabaseUnavailable 15 minutes after the start of an outage.
        """
        self._check_outage()
        return self._by_digest.get(sha256_hex(text))

    def find_by_id(self, identity: str) -> _R | None:
        """Return the credential with this id, even if it has expired. Never blocks.

        Raises: DatabaseUnavailable 15 minutes after the start of an outage.
        """
        self._check_outage()
        return self._by_id.get(identity)

    def record_use(self, identity: str) -> None:
        """Record that a credential was used. Never blocks."""
        self._recorder.record(self._table, identity)

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Call `subscriber` in any thread after a change or expiry. It must not block."""
        self._subscribers = (*self._subscribers, subscriber)

    def handle_events(self, events: Sequence[Event]) -> None:
        """Poll immediately if events concern credentials, or were missed (`events` is empty)."""
        if not events or any(e.kind in (TOKENS_CHANGED, DATABASE_RESTORED) for e in events):
            self._polling_thread.wake()

    def try_refresh(self) -> None:
        """Read the credentials again. Never raises; the polling thread retries after a failure."""
        with self._refresh_lock:
            before, self._refreshed_at = self._refreshed_at, self._clock()
            try:
                rows = [*self._table.list()]
                self._is_stale, self._read_at = False, self._refreshed_at
            except Exception:  # noqa: BLE001 - the polling thread must survive any error
                self._is_stale = True
                rows = [*self._by_id.values()]
            by_digest = {row.digest: row for row in rows}
            was_outdated, self._was_outdated = self._was_outdated, self._is_outdated
            is_changed = by_digest != self._by_digest or was_outdated != self._was_outdated
            self._by_digest, self._by_id = by_digest, {row.id: row for row in rows}
            if is_changed or any(before < at <= self._refreshed_at for at in self._expiries()):
                for subscriber in self._subscribers:
                    subscriber()

    def close(self) -> None:
        """Stop polling."""
        self._polling_thread.close()

    @property
    def _is_outdated(self) -> bool:
        return self._is_stale and self._clock() - self._read_at > OUTAGE_LIMIT

    def _check_outage(self) -> None:
        if self._is_outdated and self._by_id:
            raise DatabaseUnavailable("access could not be checked for 15 minutes")

    def _expiries(self) -> list[float]:
        return [
            parse_time(row.expires) / 1_000_000_000 for row in self._by_id.values() if row.expires
        ]

    def _seconds_until_poll(self) -> float:
        # Open requests end when their credential expires.
        now = self._clock()
        with self._refresh_lock:
            coming = [at for at in self._expiries() if at > self._refreshed_at]
        waits = [max(at - now, _MIN_INTERVAL) for at in coming]
        return min([RETRY_INTERVAL if self._is_stale else POLL_INTERVAL, *waits])
