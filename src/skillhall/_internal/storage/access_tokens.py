"""Tokens: what lets clients into every server on one database. Only digests are kept."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.background import PollingThread
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.ports import DATABASE_RESTORED, TOKENS_CHANGED
from skillhall._internal.storage.records import StoredToken
from skillhall.errors import FieldRefused, TokenNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillhall._internal.storage.ports import TokenTable
    from skillhall._internal.storage.records import Event

Token: TypeAlias = StoredToken
TOKEN_PREFIX = "skh_"  # noqa: S105 - not a secret
MAX_LABEL = 100  # characters
POLL_INTERVAL = 30.0  # seconds between looks that no event asks for
RETRY_INTERVAL = 1.0  # seconds after a look that failed
_THREAD_NAME = "skillhall-tokens"


class NewToken(NamedTuple):
    """A token that nobody can read again."""

    text: str
    stored: StoredToken


@dataclass(frozen=True, slots=True)
class AccessTokens:
    """The verbs on tokens."""

    store: TokenTable
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def create(self, label: str) -> NewToken:
        """Make a token. Raises: FieldRefused, Conflict, DatabaseUnavailable, DatabaseFull."""
        name = label.strip()
        if not name or len(name) > MAX_LABEL or not name.isprintable():
            problem = f"it is one line of 1 to {MAX_LABEL} printable characters"
            raise FieldRefused("label", problem)
        text = f"{TOKEN_PREFIX}{secrets.token_urlsafe(32)}"
        digest = sha256_hex(text.encode("ascii"))
        stored = StoredToken(secrets.token_hex(4), name, digest, self._get_timestamp())
        self.store.add(stored)
        return NewToken(text, stored)

    def list(self) -> Sequence[StoredToken]:
        """All of them, the oldest first. Raises: DatabaseUnavailable."""
        return self.store.list()

    def revoke(self, name: str) -> None:
        """Let nobody in any more by the token with that id or label.

        Raises: TokenNotFound, DatabaseUnavailable, DatabaseFull.
        """
        if not self.store.delete(name.strip(), self._get_timestamp()):
            raise TokenNotFound(name)

    def _get_timestamp(self) -> str:
        return self.clock().isoformat(timespec="microseconds")


class TokenCache:
    """The tokens that are accepted at this moment; `close` it.

    While the database cannot be reached, those that were known last are.
    """

    def __init__(self, store: TokenTable) -> None:
        self._store = store
        self._refresh_lock = threading.Lock()
        self._by_digest: Mapping[str, StoredToken] = {}
        self._by_id: Mapping[str, StoredToken] = {}
        self._subscribers: tuple[Callable[[], None], ...] = ()
        self._is_stale = True
        self._polling_thread = PollingThread(self.try_refresh, self._get_interval, _THREAD_NAME)

    def find(self, token: bytes) -> StoredToken | None:
        """The accepted token with this text; it never waits."""
        return self._by_digest.get(sha256_hex(token))

    def find_by_id(self, identity: str) -> StoredToken | None:
        """The accepted token with this id; it never waits."""
        return self._by_id.get(identity)

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Call `listener` in the ring's own thread after every change; it must not block."""
        self._subscribers = (*self._subscribers, subscriber)

    def handle_events(self, events: Sequence[Event]) -> None:
        """Look at once if events tell of tokens, or if nobody knows what they would have told."""
        if not events or any(one.kind in (TOKENS_CHANGED, DATABASE_RESTORED) for one in events):
            self._polling_thread.wake()

    def try_refresh(self) -> None:
        """Read them again; what cannot be done is tried again soon."""
        with self._refresh_lock:
            try:
                self._replace_tokens(self._store.list())
                self._is_stale = False
            except Exception:  # noqa: BLE001 - whatever it is, the thread must go on looking
                self._is_stale = True

    def close(self) -> None:
        """Look no more."""
        self._polling_thread.close()

    def _replace_tokens(self, tokens: Sequence[StoredToken]) -> None:
        by_digest = {one.digest: one for one in tokens}
        if by_digest == self._by_digest:
            return
        self._by_digest, self._by_id = by_digest, {one.id: one for one in tokens}
        for listener in self._subscribers:
            listener()

    def _get_interval(self) -> float:
        return RETRY_INTERVAL if self._is_stale else POLL_INTERVAL
