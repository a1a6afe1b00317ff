"""Access tokens, shared by all servers of one database. Only digests are stored."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.background import PollingThread
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.records import DATABASE_RESTORED, TOKENS_CHANGED, StoredToken
from skillhall.errors import FieldRefused, TokenNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillhall._internal.storage.records import Event
    from skillhall._internal.storage.sql.token_rows import SqlTokenTable

Token: TypeAlias = StoredToken
TOKEN_PREFIX = "skh_"  # noqa: S105 - not a secret
MAX_LABEL = 100  # characters
POLL_INTERVAL = 30.0  # seconds between polls, if no event arrives
RETRY_INTERVAL = 1.0  # seconds until the next poll after a failure


class NewToken(NamedTuple):
    """New token. Its text is shown only once."""

    text: str
    stored: StoredToken


@dataclass(frozen=True, slots=True)
class AccessTokens:
    """Operations on access tokens."""

    store: SqlTokenTable
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def create(self, label: str) -> NewToken:
        """Create a token.

        Raises: FieldRefused, Conflict if the label is taken, DatabaseUnavailable, DatabaseFull.
        """
        name = label.strip()
        if not name or len(name) > MAX_LABEL or not name.isprintable():
            raise FieldRefused("label", f"must have 1 to {MAX_LABEL} printable characters")
        text = f"{TOKEN_PREFIX}{secrets.token_urlsafe(32)}"
        digest = sha256_hex(text.encode("ascii"))
        created = self.clock().isoformat(timespec="microseconds")
        stored = StoredToken(secrets.token_hex(4), name, digest, created)
        self.store.add(stored)
        return NewToken(text, stored)

    def list(self) -> Sequence[StoredToken]:
        """Return all tokens, oldest first. Raises: DatabaseUnavailable."""
        return self.store.list()

    def revoke(self, name: str) -> None:
        """Revoke the token with this id or label.

        Raises: TokenNotFound, DatabaseUnavailable, DatabaseFull.
        """
        at = self.clock().isoformat(timespec="microseconds")
        if not self.store.delete(name.strip(), at):
            raise TokenNotFound(name)


class TokenCache:
    """Cache of the currently accepted tokens. Call `close` when done.

    While the database is unavailable, the last known tokens are accepted.
    """

    def __init__(self, store: SqlTokenTable) -> None:
        self._store = store
        self._refresh_lock = threading.Lock()
        self._by_digest: Mapping[str, StoredToken] = {}
        self._by_id: Mapping[str, StoredToken] = {}
        self._subscribers: tuple[Callable[[], None], ...] = ()
        self._is_stale = True
        self._polling_thread = PollingThread(
            self.try_refresh,
            lambda: RETRY_INTERVAL if self._is_stale else POLL_INTERVAL,
            "skillhall-tokens",
        )

    def find(self, token: bytes) -> StoredToken | None:
        """Return the accepted token with this text, or None. Never blocks."""
        return self._by_digest.get(sha256_hex(token))

    def find_by_id(self, identity: str) -> StoredToken | None:
        """Return the accepted token with this id, or None. Never blocks."""
        return self._by_id.get(identity)

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Call `subscriber` in the polling thread after every change. It must not block."""
        self._subscribers = (*self._subscribers, subscriber)

    def handle_events(self, events: Sequence[Event]) -> None:
        """Poll at once if an event concerns tokens.

        An empty sequence means that events were missed, which also triggers a poll.
        """
        if not events or any(e.kind in (TOKENS_CHANGED, DATABASE_RESTORED) for e in events):
            self._polling_thread.wake()

    def try_refresh(self) -> None:
        """Read the tokens again. Never raises; the polling thread retries after a failure."""
        with self._refresh_lock:
            try:
                tokens = self._store.list()
                by_digest = {token.digest: token for token in tokens}
                if by_digest != self._by_digest:
                    self._by_digest, self._by_id = by_digest, {token.id: token for token in tokens}
                    for subscriber in self._subscribers:
                        subscriber()
                self._is_stale = False
            except Exception:  # noqa: BLE001 - the polling thread must survive any error
                self._is_stale = True

    def close(self) -> None:
        """Stop polling."""
        self._polling_thread.close()
