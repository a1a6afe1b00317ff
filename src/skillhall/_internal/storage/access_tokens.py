"""Access tokens, shared by all servers of one database. Only digests are stored."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.policy.access.access_scopes import OPERATOR, AccessScope, expand_scopes
from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.credential_cache import CredentialCache
from skillhall._internal.storage.records import StoredToken
from skillhall.errors import FieldRefused, TokenNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from skillhall._internal.storage.sql.token_rows import SqlTokenTable

Token: TypeAlias = StoredToken
TokenCache: TypeAlias = CredentialCache[StoredToken]
TOKEN_PREFIX = "skh_"  # noqa: S105 - not a secret
MAX_LABEL = 100  # characters


class NewToken(NamedTuple):
    """New token. Its text is shown only once."""

    text: str
    stored: StoredToken


@dataclass(frozen=True, slots=True)
class AccessTokens:
    """Operations on access tokens. The audit log records the actor."""

    store: SqlTokenTable
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def create(
        self,
        label: str,
        owner: str = OPERATOR,
        scopes: Sequence[AccessScope] = (AccessScope.ADMIN,),
        lifetime: timedelta | None = None,
        *,
        actor: Actor,
    ) -> NewToken:
        """Create a token; without a lifetime, it does not expire.

        Raises: FieldRefused, Conflict if the label is taken, DatabaseUnavailable, DatabaseFull.
        """
        text, now = f"{TOKEN_PREFIX}{secrets.token_urlsafe(32)}", self.clock()
        try:
            expires = None if lifetime is None else (now + lifetime).isoformat(timespec="seconds")
        except OverflowError:
            raise FieldRefused("expires", "is too far in the future") from None
        stored = StoredToken(
            secrets.token_hex(4),
            _check_name("label", label),
            sha256_hex(text.encode("ascii")),
            now.isoformat(timespec="microseconds"),
            _check_name("owner", owner),
            expand_scopes(scopes),
            expires,
        )
        return NewToken(text, self.store.add(stored, actor))

    def list(self, *, with_revoked: bool = False, user: str | None = None) -> Sequence[StoredToken]:
        """Return the tokens, or those of a user, oldest first. Raises: DatabaseUnavailable."""
        return self.store.list(with_revoked=with_revoked, user=user)

    def revoke(self, name: str, user: str | None = None, *, actor: Actor) -> None:
        """Revoke the token with this id or label; with `user`, only if it belongs to that user.

        Raises: TokenNotFound, DatabaseUnavailable, DatabaseFull.
        """
        at = self.clock().isoformat(timespec="microseconds")
        if not self.store.revoke(name.strip(), at, user, actor):
            raise TokenNotFound(name)

    def describe_state(self, token: StoredToken) -> str:
        """Return "active", "expired" or "revoked"."""
        if not token.digest:
            return "revoked"
        return "expired" if token.is_expired(self.clock().timestamp()) else "active"


def _check_name(field: str, text: str) -> str:
    """Return the name without surrounding spaces. Raises: FieldRefused."""
    name = text.strip()
    if not name or len(name) > MAX_LABEL or not name.isprintable():
        raise FieldRefused(field, f"must have 1 to {MAX_LABEL} printable characters")
    return name
