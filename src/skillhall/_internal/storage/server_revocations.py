"""Revocations of a server: the operations on them, and a cache of them.

All servers of one database publish the same list.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.background import PollingThread
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.trust.revocations import (
    Revocation,
    RevocationEntry,
    find_revoked,
    is_digest,
)
from skillhall._internal.storage.records import DATABASE_RESTORED, REVOCATIONS_CHANGED
from skillhall._internal.storage.sql.revocation_rows import add_revocation
from skillhall.errors import FieldRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.records import Event
    from skillhall._internal.storage.sql.revocation_rows import SqlRevocationTable

MAX_REASON = 1_000  # characters
MAX_NAME = 300  # characters of a skill, or of what to use instead
_STATE_FILE = "published-revocations.json"  # in the data folder
_STATE_MODE = 0o600
_POLL_INTERVAL, _RETRY_INTERVAL = 30.0, 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Revocations:
    """Operations on the revocations of a server."""

    table: SqlRevocationTable
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def revoke(
        self,
        actor: Actor,
        digests: Iterable[str],
        *,
        skill: str = "",
        reason: str,
        instead: str = "",
    ) -> Sequence[RevocationEntry]:
        """Revoke digests, all or none; return the entry of each, which may be an earlier one.

        Raises: FieldRefused, DatabaseUnavailable, DatabaseFull.
        """
        new = [self._build(digest, skill, reason, instead) for digest in digests]
        return self.table.write(
            lambda connection: [add_revocation(connection, actor, one) for one in new]
        )

    def restore(self, actor: Actor, digest: str, *, skill: str = "", reason: str) -> bool:
        """Undo a revocation; return whether the digest was revoked.

        Raises: FieldRefused, DatabaseUnavailable, DatabaseFull.
        """
        revocation = self._build(digest, skill, reason, "")
        entry = self.table.write(
            lambda connection: add_revocation(connection, actor, revocation, is_revoked=False)
        )
        return entry.at == revocation.at

    def list(self) -> Sequence[RevocationEntry]:
        """Return all entries, oldest first. Raises: DatabaseUnavailable."""
        return self.table.list()

    def _build(self, digest: str, skill: str, reason: str, instead: str) -> Revocation:
        if not is_digest(digest):
            raise FieldRefused("digest", "must be sha256: and 64 hexadecimal digits")
        if not reason.strip():
            raise FieldRefused("reason", "must not be empty")
        at = self.clock().isoformat(timespec="microseconds").replace("+00:00", "Z")
        return Revocation(
            digest,
            _check_line("skill", skill, MAX_NAME),
            _check_line("reason", reason, MAX_REASON),
            at,
            _check_line("instead", instead, MAX_NAME),
        )


def _check_line(field: str, text: str, limit: int) -> str:
    line = text.strip()
    if len(line) > limit or not line.isprintable():
        raise FieldRefused(field, f"must be one line of at most {limit} characters")
    return line


class RevokedDigests(NamedTuple):
    """Revocations at one moment, by digest; the number changes with them."""

    number: int = 0
    by_digest: Mapping[str, Revocation] = {}


class RevocationCache:
    """The entries of the database, for every request. Call `close` when done.

    While the database is unavailable, the last known entries apply, even after a restart.
    """

    def __init__(self, table: SqlRevocationTable, data_directory: str) -> None:
        self._table = table
        self._directory = data_directory
        self._lock = threading.Lock()
        self._is_stale = True
        self.entries: tuple[RevocationEntry, ...] | None = self._load()  # None: never read
        self.revoked = _collect(self.entries)
        self._thread = PollingThread(
            self.try_refresh,
            lambda: _RETRY_INTERVAL if self._is_stale else _POLL_INTERVAL,
            "skillhall-revocations",
        )

    def handle_events(self, events: Sequence[Event]) -> None:
        """Read the entries again if events concern them, or were missed (`events` is empty)."""
        kinds = (REVOCATIONS_CHANGED, DATABASE_RESTORED)
        if not events or any(event.kind in kinds for event in events):
            self._thread.wake()

    def try_refresh(self) -> None:
        """Read the entries again. Never raises; the thread retries after a failure."""
        with self._lock:
            try:
                entries = tuple(self._table.list())
            except Exception:  # noqa: BLE001 - the polling thread must survive any error
                self._is_stale = True
                return
            self._is_stale = False
            if entries != self.entries:
                self.entries, self.revoked = entries, _collect(entries)
                self._save(entries)

    def close(self) -> None:
        """Stop polling."""
        self._thread.close()

    def _load(self) -> tuple[RevocationEntry, ...] | None:
        try:
            with open(os.path.join(self._directory, _STATE_FILE), "rb") as file:
                return tuple(RevocationEntry(*row) for row in json.load(file))
        except (OSError, ValueError, TypeError):
            return None

    def _save(self, entries: tuple[RevocationEntry, ...]) -> None:
        if not entries and not os.path.exists(os.path.join(self._directory, _STATE_FILE)):
            return
        with contextlib.suppress(OSError), WritableFolder(self._directory) as folder:
            folder.write_file(_STATE_FILE, json.dumps(entries).encode(), _STATE_MODE)


def _collect(entries: tuple[RevocationEntry, ...] | None) -> RevokedDigests:
    known = entries or ()
    number = max((entry.number for entry in known), default=0)
    return RevokedDigests(number, {one.digest: one.revocation for one in find_revoked(known)})
