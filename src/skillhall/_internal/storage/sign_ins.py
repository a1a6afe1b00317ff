"""Sign-ins of browsers, shared by all servers of one database. Only digests are stored."""

from __future__ import annotations

import secrets
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.background import PollingThread
from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.credential_cache import RETRY_INTERVAL, CredentialCache
from skillhall._internal.storage.records import SignIn, format_time
from skillhall.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.storage.credential_cache import UseRecorder
    from skillhall._internal.storage.sql.token_rows import SqlSignInTable

_MAX_AGENT = 200  # characters
_MAX_WAIT = 0.5  # seconds that a sign-in waits for the database
_MAX_PENDING = 1000


class NewSignIn(NamedTuple):
    """New sign-in with the value of its cookie, which is not stored."""

    cookie: str
    stored: SignIn


class _PendingSignIn(NamedTuple):
    """A sign-in that has not been stored yet."""

    sign_in: SignIn
    stored: threading.Event
    actor: Actor


class SignIns(CredentialCache[SignIn]):
    """Cache of the sign-ins, and the operations on them. Call `close` when done.

    A thread stores new sign-ins, so that users can sign in while the database hangs or is down.
    Until it is stored, a sign-in is known to this server only, and lost if the server stops.
    """

    def __init__(
        self,
        table: SqlSignInTable,
        recorder: UseRecorder,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(table, recorder, clock)
        self._sign_in_table = table
        self._pending: dict[str, _PendingSignIn] = {}  # by the digest of the cookie
        self._is_stuck = False  # the database did not store a sign-in in time
        self._writer = PollingThread(
            self._store_pending,
            lambda: RETRY_INTERVAL if self._pending else None,
            "skillhall-sign-ins",
        )

    def find(self, text: bytes) -> SignIn | None:
        """Return the sign-in with this cookie, even if it has expired. Never blocks."""
        pending = self._pending.get(sha256_hex(text)) if self._pending else None
        return super().find(text) if pending is None else pending.sign_in

    def find_by_id(self, identity: str) -> SignIn | None:
        """Return the sign-in with this id, even if it has expired. Never blocks."""
        pending = [one.sign_in for one in [*self._pending.values()] if one.sign_in.id == identity]
        return pending[0] if pending else super().find_by_id(identity)

    def close(self) -> None:
        """Stop polling and storing."""
        self._writer.close()
        super().close()

    def load(self, cookie: bytes) -> SignIn | None:
        """Return the sign-in with this cookie from the database, and cache it.

        Another server may have created it a moment ago. Raises: DatabaseUnavailable.
        """
        # Under the lock, so that a refresh after the end of the sign-in removes it again.
        with self._refresh_lock:
            found = self._sign_in_table.find(sha256_hex(cookie))
            if found is not None:
                self._add(found)
            return found

    def create(
        self,
        token: str,
        address: str,
        agent: str,
        lifetime: float,
        actor: Actor,
    ) -> NewSignIn:
        """Create a sign-in with a token. `lifetime` is in seconds.

        Raises: DatabaseUnavailable if too many sign-ins are waiting for the database.
        """
        if len(self._pending) >= _MAX_PENDING:
            raise DatabaseUnavailable("too many sign-ins are waiting for it")
        cookie, now = secrets.token_urlsafe(32), self._clock()
        sign_in = SignIn(
            id=secrets.token_hex(8),
            digest=sha256_hex(cookie.encode("ascii")),
            token=token,
            created=format_time(now),
            used=format_time(now),
            expires=format_time(now + lifetime),
            address=address,
            agent="".join(filter(str.isprintable, agent))[:_MAX_AGENT],
        )
        pending = _PendingSignIn(sign_in, threading.Event(), actor)
        self._pending[sign_in.digest] = pending
        self._writer.wake()
        # Usually it is stored before the browser's next request, which may reach another server.
        if not self._is_stuck:
            self._is_stuck = not pending.stored.wait(_MAX_WAIT)
        return NewSignIn(cookie, sign_in)

    def _store_pending(self) -> None:
        for digest, (sign_in, stored, actor) in [*self._pending.items()]:
            try:
                # A connection that broke during the commit may have stored it already.
                if not self._is_stuck or self._sign_in_table.find(digest) is None:
                    self._sign_in_table.add(sign_in, actor)
                with self._refresh_lock:
                    self._add(sign_in)
                if self._pending.pop(digest, None) is None:  # it was ended in between
                    self.end(sign_in.token, sign_in.id, actor)
            except Exception:  # noqa: BLE001 - the thread must survive any error, and tries again
                return
            self._is_stuck = False
            stored.set()

    def list(self, token: str) -> Sequence[SignIn]:
        """Return the sign-ins of a token or user, the latest first. Raises: DatabaseUnavailable."""
        now = self._clock()
        return [item for item in self._sign_in_table.list(token) if not item.is_expired(now)]

    def end(self, token: str, identity: str, actor: Actor) -> bool:
        """End a sign-in of a token; return whether it existed.

        Raises: DatabaseUnavailable, DatabaseFull.
        """
        pending = [one.sign_in for one in [*self._pending.values()] if one.sign_in.token == token]
        is_pending = False
        for sign_in in pending:
            if sign_in.id == identity:
                is_pending = self._pending.pop(sign_in.digest, None) is not None
        at = format_time(self._clock())
        is_ended = self._sign_in_table.delete(token, identity, at, actor)
        self.try_refresh()  # here at once, on other servers after the event
        return is_ended or is_pending

    def _add(self, sign_in: SignIn) -> None:
        self._by_digest[sign_in.digest] = self._by_id[sign_in.id] = sign_in
