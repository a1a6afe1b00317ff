"""User accounts of the servers on one database."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.policy.access.access_scopes import OPERATOR
from skillhall._internal.policy.access.actor import SYSTEM_ACTOR, Via
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.accounts.passwords import (
    check_new_password,
    hash_password,
    verify_password,
)
from skillhall._internal.storage.credential_cache import CredentialCache
from skillhall._internal.storage.records import StoredUser, UserLink
from skillhall.errors import Conflict, FieldRefused, IdentityRefused, LinkExpired, UserNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.accounts.oidc_provider import ProviderIdentity
    from skillhall._internal.storage.accounts.user_rows import SqlUserTable
    from skillhall._internal.storage.credential_cache import UseRecorder

LINK_LIFETIME = timedelta(hours=24)
MAX_DISPLAY_LENGTH = 100
MAX_SUBJECT_LENGTH = 255  # of identities, as OpenID Connect says
# A "/" would make the name of an actor ambiguous.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_RESERVED_NAMES = frozenset({OPERATOR, SYSTEM_ACTOR.user, *Via})


class NewUser(NamedTuple):
    """New user. The code of the link is shown only once."""

    user: StoredUser
    code: str  # "" if the subject at the identity provider is known
    tokens: int  # existing tokens that now belong to the user


class NewLink(NamedTuple):
    """New link to set a password. Its code is shown only once."""

    user: StoredUser
    code: str
    expires: str


class UserCache(CredentialCache[StoredUser]):
    """Cache of all users. Call `close` when done."""

    def __init__(
        self, table: SqlUserTable, recorder: UseRecorder, *, may_have_users: bool = True
    ) -> None:
        """Create the cache; `may_have_users` is assumed until users have been read."""
        self._is_known = not may_have_users
        super().__init__(table, recorder)

    @property
    def may_exist(self) -> bool:
        """Whether there may be users: true until the database has been read."""
        return not self._is_known or bool(self._by_id)

    def try_refresh(self) -> None:
        """Read the users again. Never raises."""
        super().try_refresh()
        self._is_known = self._is_known or not self._is_stale


@dataclass(frozen=True, slots=True)
class UserAccounts:
    """Operations on users."""

    table: SqlUserTable
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    issuer: str = ""  # of the identity provider; "" without one

    def add(
        self, name: str, role: Role, actor: Actor, display: str = "", subject: str = ""
    ) -> NewUser:
        """Add a user, with a link to set a password or connect an identity.

        With the `subject` of the person at the identity provider, there is no link.
        Raises: FieldRefused, Conflict if the name or subject is taken, DatabaseUnavailable.
        """
        if not _NAME.fullmatch(name):
            problem = "must be 1 to 64 lowercase letters, digits, '.', '_' or '-'"
            raise FieldRefused("name", f"{problem}, and start with a letter or digit")
        if name in _RESERVED_NAMES:
            raise FieldRefused("name", f"{name!r} is reserved")
        user = StoredUser(
            id=secrets.token_hex(8),
            name=name,
            display=check_display(display),
            role=role.value,
            created=self._now(),
        )
        if subject:
            return self._add_subject(user, actor, subject.strip())
        code, link = self._build_link(user)
        return NewUser(user, code, self.table.add(user, actor, link))

    def _add_subject(self, user: StoredUser, actor: Actor, subject: str) -> NewUser:
        if not self.issuer:
            raise FieldRefused("subject", "this server has no identity provider")
        if not 0 < len(subject) <= MAX_SUBJECT_LENGTH or not subject.isprintable():
            problem = f"must be 1 to {MAX_SUBJECT_LENGTH} printable characters"
            raise FieldRefused("subject", problem)
        if self.table.find_identity(self.issuer, subject) is not None:
            raise Conflict(f"a user with the subject {subject!r}")
        user = replace(user, issuer=self.issuer, subject=subject)
        return NewUser(user, "", self.table.add(user, actor))

    def sign_in_identity(
        self, identity: ProviderIdentity, actor: Actor, code: str = ""
    ) -> StoredUser:
        """Return the user with an identity of the provider; add or update the user.

        The `code` of a link connects its user with the identity. Otherwise, a user is never found
        by name or e-mail: both can belong to someone else.
        Raises: IdentityRefused if there is no such user and none may be added, or the user is
        disabled, LinkExpired, DatabaseUnavailable.
        """
        user = self.table.find_identity(identity.issuer, identity.subject)
        if code:
            return self._connect_identity(identity, actor, code, user)
        if user is None:
            return self._add_identity(identity, actor)
        if user.disabled is not None:
            raise IdentityRefused("your account is disabled")
        if identity.has_role_claim and identity.role not in {None, user.role}:
            role = str(identity.role)
            actor = actor._replace(user=user.name)
            return self.table.change(user, actor, "role", self._now(), {"role": role})
        return user

    def _connect_identity(
        self, identity: ProviderIdentity, actor: Actor, code: str, user: StoredUser | None
    ) -> StoredUser:
        if user is not None:
            raise IdentityRefused(f"you already have the account {user.name!r}")
        identified: dict[str, str] = {"issuer": identity.issuer, "subject": identity.subject}
        if identity.has_role_claim and identity.role is not None:
            identified["role"] = identity.role.value
        connected = self.table.connect_identity(_digest(code), identified, self._now(), actor)
        if connected is None:
            raise LinkExpired
        return connected

    def _add_identity(self, identity: ProviderIdentity, actor: Actor) -> StoredUser:
        if identity.role is None:
            raise IdentityRefused("you have no account on this server")
        display = "".join(filter(str.isprintable, identity.display)).strip()[:MAX_DISPLAY_LENGTH]
        for name in _suggest_names(identity.name):
            user = StoredUser(
                id=secrets.token_hex(8),
                name=name,
                display=display,
                role=identity.role.value,
                created=self._now(),
                issuer=identity.issuer,
                subject=identity.subject,
            )
            try:
                # The identity provider chose the name, so it must not give access to tokens.
                self.table.add(user, actor._replace(user=name), adopts_tokens=False)
            except Conflict:
                # Another server may have added the same person at the same time.
                added = self.table.find_identity(identity.issuer, identity.subject)
                if added is not None:
                    return added
            else:
                return user
        raise IdentityRefused("your name is taken by other users")

    def list(self) -> Sequence[StoredUser]:
        """Return the users, sorted by name. Raises: DatabaseUnavailable."""
        return self.table.list()

    def find(self, name: str) -> StoredUser:
        """Return the user with this name. Raises: UserNotFound, DatabaseUnavailable."""
        user = self.table.find(name)
        if user is None:
            raise UserNotFound(name)
        return user

    def set_role(self, name: str, role: Role, actor: Actor) -> StoredUser:
        """Change the role of a user.

        Raises: UserNotFound, FieldRefused for one's own role or the last administrator,
        DatabaseUnavailable.
        """
        user, now = self._find_other(name, actor, "role"), self._now()
        values = {"role": role.value}
        is_demoted = role is not Role.ADMINISTRATOR
        return self.table.change(user, actor, "role", now, values, keeps_administrator=is_demoted)

    def disable(self, name: str, actor: Actor) -> StoredUser:
        """Reject the user's tokens and end the user's sign-ins.

        Raises: UserNotFound, FieldRefused for oneself or the last administrator,
        DatabaseUnavailable.
        """
        user, now = self._find_other(name, actor, "disabled"), self._now()
        values = {"disabled": user.disabled or now}
        return self.table.change(user, actor, "disable", now, values, keeps_administrator=True)

    def enable(self, name: str, actor: Actor) -> StoredUser:
        """Let a disabled user sign in again. Raises: UserNotFound, DatabaseUnavailable."""
        return self.table.change(self.find(name), actor, "enable", self._now(), {"disabled": None})

    def remove(self, name: str, actor: Actor) -> None:
        """Remove a user, revoke the user's tokens and end the user's sign-ins.

        Raises: UserNotFound, FieldRefused for oneself, or for the last administrator while there
        are other users, DatabaseUnavailable.
        """
        self.table.remove(self._find_other(name, actor, "name"), actor, self._now())

    def create_link(self, name: str, actor: Actor) -> NewLink:
        """Create a link like that of a new user; earlier links of the user become invalid.

        Raises: UserNotFound, FieldRefused if the user is disabled or has no password here,
        DatabaseUnavailable.
        """
        user = self.find(name)
        if user.disabled is not None:
            raise FieldRefused("name", f"{name!r} is disabled", "enable the user first")
        if user.issuer:
            raise FieldRefused(
                "name", f"{name!r} has no password here: the user signs in at {user.issuer}"
            )
        code, link = self._build_link(user)
        self.table.add_link(user, actor, link)
        return NewLink(user, code, link.expires)

    def find_link(self, code: str) -> StoredUser:
        """Return the user of a link. Raises: LinkExpired, DatabaseUnavailable."""
        user = self.table.find_link(_digest(code), self._now())
        if user is None:
            raise LinkExpired
        return user

    def use_link(self, code: str, password: str, actor: Actor) -> StoredUser:
        """Set the password of the user of a link, and end the user's sign-ins.

        Raises: LinkExpired, FieldRefused, Busy, DatabaseUnavailable.
        """
        check_new_password(password, self.find_link(code).name)
        stored = hash_password(password)
        user = self.table.use_link(_digest(code), stored, self._now(), actor)
        if user is None:
            raise LinkExpired
        return user

    def change_password(
        self, user: StoredUser, current: str, new: str, actor: Actor, sign_in: str = ""
    ) -> StoredUser:
        """Change the password of a user and end all sign-ins except `sign_in`.

        Raises: FieldRefused, Busy, DatabaseUnavailable.
        """
        if not verify_password(current, user.password):
            raise FieldRefused("current", "is not your password")
        check_new_password(new, user.name)
        changed = replace(user, password=hash_password(new))
        self.table.change_password(changed, actor, self._now(), sign_in)
        return changed

    def _find_other(self, name: str, actor: Actor, field: str) -> StoredUser:
        user = self.find(name)
        if user.name == actor.user:
            raise FieldRefused(field, "you cannot change this for your own account")
        return user

    def _build_link(self, user: StoredUser) -> tuple[str, UserLink]:
        code, now = secrets.token_urlsafe(32), self.clock()
        expires = (now + LINK_LIFETIME).isoformat(timespec="seconds")
        return code, UserLink(_digest(code), user.id, self._now(), expires)

    def _now(self) -> str:
        return self.clock().isoformat(timespec="seconds")


def _suggest_names(preferred: str) -> list[str]:
    """Return valid names for a new user, the best first."""
    text = re.sub(r"[^a-z0-9._-]+", "-", preferred.lower().partition("@")[0]).strip("-._")[:56]
    base = text if text and text not in _RESERVED_NAMES else "user"
    return [
        base,
        *(f"{base}-{number}" for number in range(2, 20)),
        f"{base}-{secrets.token_hex(3)}",
    ]


def check_display(text: str) -> str:
    """Return a display name without surrounding spaces. Raises: FieldRefused."""
    name = text.strip()
    if len(name) > MAX_DISPLAY_LENGTH or not name.isprintable():
        problem = f"must have at most {MAX_DISPLAY_LENGTH} printable characters"
        raise FieldRefused("display", problem)
    return name


def _digest(code: str) -> str:
    return sha256_hex(code.encode("utf-8", "surrogatepass"))
