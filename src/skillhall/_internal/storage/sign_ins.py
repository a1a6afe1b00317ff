"""Sign-ins of browsers, shared by all servers of one database. Only digests are stored."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.credential_cache import CredentialCache
from skillhall._internal.storage.records import SignIn, format_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.storage.credential_cache import UseRecorder
    from skillhall._internal.storage.sql.token_rows import SqlSignInTable

_MAX_AGENT = 200  # characters


class NewSignIn(NamedTuple):
    """New sign-in with the value of its cookie, which is not stored."""

    cookie: str
    stored: SignIn


class SignIns(CredentialCache[SignIn]):
    """Cache of the sign-ins, and the operations on them. Call `close` when done."""

    def __init__(
        self,
        table: SqlSignInTable,
        recorder: UseRecorder,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(table, recorder, clock)
        self._sign_in_table = table

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

    def create(self, token: str, address: str, agent: str, lifetime: float) -> NewSignIn:
        """Create a sign-in with a token. `lifetime` is in seconds.

        Raises: DatabaseUnavailable, DatabaseFull.
        """
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
        self._sign_in_table.add(sign_in)
        with self._refresh_lock:
            self._add(sign_in)
        return NewSignIn(cookie, sign_in)

    def list(self, token: str) -> Sequence[SignIn]:
        """Return the sign-ins of a token, the latest first. Raises: DatabaseUnavailable."""
        now = self._clock()
        return [item for item in self._sign_in_table.list(token) if not item.is_expired(now)]

    def end(self, token: str, identity: str) -> bool:
        """End a sign-in of a token; return whether it existed.

        Raises: DatabaseUnavailable, DatabaseFull.
        """
        is_ended = self._sign_in_table.delete(token, identity, format_time(self._clock()))
        self.try_refresh()  # here at once, on other servers after the event
        return is_ended

    def _add(self, sign_in: SignIn) -> None:
        self._by_digest[sign_in.digest] = self._by_id[sign_in.id] = sign_in
