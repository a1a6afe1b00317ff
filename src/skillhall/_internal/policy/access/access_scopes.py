"""Access scopes: what a token of a server allows."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class AccessScope(StrEnum):
    """Scope of a token. A token may have several."""

    READ = "read"  # skills, prompts and sessions
    WRITE = "write"  # change skills, prompts and sessions
    REVIEW = "review"  # approve versions of skills, and revoke digests
    ADMIN = "admin"  # users, sources, inventories, and the server's git tokens
    AUDIT = "audit"  # read the audit log
    REPORT = "report"  # send inventories


# Scopes that are of no use without others.
_INCLUDED = {
    AccessScope.WRITE: (AccessScope.READ,),
    AccessScope.REVIEW: (AccessScope.READ,),
    AccessScope.ADMIN: (AccessScope.READ, AccessScope.WRITE, AccessScope.REVIEW),
}


def expand_scopes(scopes: Iterable[AccessScope]) -> tuple[AccessScope, ...]:
    """Return the scopes and those that they include, in the order of `AccessScope`."""
    chosen = {*scopes}
    chosen |= {included for scope in chosen for included in _INCLUDED.get(scope, ())}
    return tuple(scope for scope in AccessScope if scope in chosen)


# Before tokens had scopes, each allowed everything that a server could do.
DEFAULT_SCOPES = expand_scopes([AccessScope.ADMIN])
OPERATOR = "operator"  # owner of tokens, unless another one is named
