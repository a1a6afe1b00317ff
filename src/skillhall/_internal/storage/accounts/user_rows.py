"""Users and their links in tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, insert, literal, or_, select, update
from sqlalchemy.exc import IntegrityError

from skillhall._internal.policy.access.actor import USER_OWNER_PREFIX
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.storage.records import TOKENS_CHANGED, StoredUser
from skillhall._internal.storage.sql.audit_rows import add_audit_row
from skillhall._internal.storage.sql.events.event_rows import publish_event
from skillhall._internal.storage.sql.rows import select_fields
from skillhall._internal.storage.sql.tables import (
    sign_ins,
    token_details,
    token_owners,
    tokens,
    user_links,
    users,
)
from skillhall._internal.storage.sql.token_rows import record_uses, select_token_ids
from skillhall.errors import Conflict, FieldRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement, Connection

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.records import UserLink
    from skillhall._internal.storage.sql.engine import Database


class SqlUserTable:
    """Users in a database.

    Each change is recorded in the audit log and announced to servers.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[StoredUser]:
        """Return the users, sorted by name."""
        query = select_fields(users).order_by(users.c.name)
        rows = self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [StoredUser(**row) for row in rows]

    def find(self, name: str) -> StoredUser | None:
        """Return the user with this name, or None."""
        return self._read_user(users.c.name == name)

    def find_identity(self, issuer: str, subject: str) -> StoredUser | None:
        """Return the user with this identity at an identity provider, or None."""
        return self._read_user(and_(users.c.issuer == issuer, users.c.subject == subject))

    def find_link(self, digest: str, at: str) -> StoredUser | None:
        """Return the user whose link has this digest and is still valid, or None."""
        is_valid = and_(user_links.c.digest == digest, user_links.c.expires > at)
        owner = select(user_links.c.user).where(is_valid).scalar_subquery()
        return self._read_user(users.c.id == owner)

    def add(
        self,
        user: StoredUser,
        actor: Actor,
        link: UserLink | None = None,
        *,
        adopts_tokens: bool = True,
    ) -> int:
        """Add a user, and return how many tokens now belong to the user.

        These are the tokens whose owner has this name, unless `adopts_tokens` is False.
        Raises: Conflict if the name or the identity is taken, DatabaseUnavailable.
        """
        values = {column.key: getattr(user, column.key) for column in users.columns}
        # Revoked tokens stay as they are.
        own = select(token_details.c.id, literal(user.id)).where(
            token_details.c.owner == user.name, token_details.c.id.in_(select(tokens.c.id))
        )
        adopt = insert(token_owners).from_select(["token_id", "user"], own)
        adopt_all = adopt.returning(token_owners.c.token_id)

        def work(connection: Connection) -> int:
            try:
                connection.execute(insert(users), values)
            except IntegrityError:
                raise Conflict(f"the user {user.name!r}") from None
            count = len(connection.execute(adopt_all).all()) if adopts_tokens else 0
            if link is not None:
                connection.execute(insert(user_links), vars_of(link))
            detail = {"role": user.role}
            if user.issuer:
                detail |= {"issuer": user.issuer, "subject": user.subject}
            _record(connection, actor, "add", user, user.created, detail)
            return count

        return self._database.write(work)

    def change(  # noqa: PLR0913 - the columns, and what an audit log needs
        self,
        user: StoredUser,
        actor: Actor,
        action: str,
        at: str,
        values: Mapping[str, Any],
        *,
        keeps_administrator: bool = False,
    ) -> StoredUser:
        """Change columns of a user, and return the user.

        Raises: FieldRefused for the last administrator if `keeps_administrator`,
        DatabaseUnavailable.
        """
        changed = replace(user, **values)
        query = update(users).where(users.c.id == user.id).values(**values)

        def work(connection: Connection) -> StoredUser:
            if keeps_administrator and _is_last_administrator(connection, user):
                raise _refuse_last_administrator(user)
            connection.execute(query)
            if changed.disabled is not None:
                connection.execute(delete(sign_ins).where(_is_sign_in_of(user.id)))
                connection.execute(delete(user_links).where(user_links.c.user == user.id))
            detail = {"role": changed.role} if "role" in values else None
            _record(connection, actor, action, user, at, detail)
            return changed

        return self._database.write(work)

    def remove(self, user: StoredUser, actor: Actor, at: str) -> None:
        """Remove a user with its tokens, sign-ins and links.

        Raises: FieldRefused for the last administrator while there are other users,
        DatabaseUnavailable.
        """
        own_ids = select_token_ids(user.id)
        is_active = and_(token_details.c.id.in_(own_ids), token_details.c.revoked.is_(None))

        def work(connection: Connection) -> None:
            others = select(users.c.id).where(users.c.id != user.id).limit(1)
            is_last = _is_last_administrator(connection, user)
            if is_last and connection.execute(others).first() is not None:
                raise _refuse_last_administrator(user)
            connection.execute(delete(sign_ins).where(_is_sign_in_of(user.id)))
            connection.execute(delete(tokens).where(tokens.c.id.in_(own_ids)))
            connection.execute(update(token_details).where(is_active).values(revoked=at))
            connection.execute(delete(user_links).where(user_links.c.user == user.id))
            connection.execute(delete(users).where(users.c.id == user.id))
            _record(connection, actor, "remove", user, at)

        self._database.write(work)

    def add_link(self, user: StoredUser, actor: Actor, link: UserLink) -> None:
        """Add a link that sets a password; earlier links of the user become invalid."""

        def work(connection: Connection) -> None:
            connection.execute(delete(user_links).where(user_links.c.user == user.id))
            connection.execute(insert(user_links), vars_of(link))
            _record(connection, actor, "link", user, link.created)

        self._database.write(work)

    def use_link(self, digest: str, password: str, at: str, actor: Actor) -> StoredUser | None:
        """Set a password by a link and end the sign-ins of the user.

        Returns None if the link was used before or has expired. Raises: DatabaseUnavailable.
        """

        def work(connection: Connection) -> StoredUser | None:
            owner = _take_link(connection, digest, at)
            if owner is None:
                return None
            user = replace(owner, password=password)
            _store_password(connection, user, "")
            named = actor._replace(user=user.name)
            _record(connection, named, "password", user, at, {"by": "link"})
            return user

        return self._database.write(work)

    def connect_identity(
        self, digest: str, values: Mapping[str, str], at: str, actor: Actor
    ) -> StoredUser | None:
        """Connect the user of a link with an identity, and end the sign-ins of the user.

        The user has no password afterwards. `values` are the columns `issuer` and `subject`, and
        `role` if the identity provider assigns it. Returns None if the link was used before
        or has expired. Raises: Conflict if the identity is taken, DatabaseUnavailable.
        """

        def work(connection: Connection) -> StoredUser | None:
            owner = _take_link(connection, digest, at)
            if owner is None:
                return None
            user = replace(owner, password="", **values)
            query = update(users).where(users.c.id == user.id).values(password="", **values)
            try:
                connection.execute(query)
            except IntegrityError:
                raise Conflict("a user with this identity") from None
            connection.execute(delete(sign_ins).where(_is_sign_in_of(user.id)))
            _record(connection, actor._replace(user=user.name), "identity", user, at, values)
            return user

        return self._database.write(work)

    def change_password(self, user: StoredUser, actor: Actor, at: str, sign_in: str) -> None:
        """Store the password of `user` and end all sign-ins except `sign_in`."""

        def work(connection: Connection) -> None:
            _store_password(connection, user, sign_in)
            _record(connection, actor, "password", user, at)

        self._database.write(work)

    def record_uses(self, times: Mapping[str, float]) -> None:
        """Store when users were last seen, by id. Raises: DatabaseUnavailable."""
        record_uses(self._database, users, times)

    def _read_user(self, condition: ColumnElement[bool]) -> StoredUser | None:
        query = select_fields(users).where(condition)
        row = self._database.read(lambda connection: connection.execute(query).mappings().first())
        return None if row is None else StoredUser(**row)


def vars_of(link: UserLink) -> dict[str, object]:
    """Return the values of the columns of a link."""
    return {column.key: getattr(link, column.key) for column in user_links.columns}


def _take_link(connection: Connection, digest: str, at: str) -> StoredUser | None:
    """Delete a link and return its user; None if the link is unknown or has expired."""
    is_valid = and_(user_links.c.digest == digest, user_links.c.expires > at)
    query = delete(user_links).where(is_valid).returning(user_links.c.user)
    owner = connection.execute(query).scalar()
    if owner is None:
        return None
    found = connection.execute(select_fields(users).where(users.c.id == owner))
    return StoredUser(**found.mappings().one())


def _is_last_administrator(connection: Connection, user: StoredUser) -> bool:
    """Whether a user is the only active administrator.

    Locks the rows of all administrators: two who remove each other would otherwise leave none.
    """
    is_active = and_(users.c.role == Role.ADMINISTRATOR.value, users.c.disabled.is_(None))
    query = select(users.c.id).where(is_active).order_by(users.c.id).with_for_update()
    return [*connection.execute(query).scalars()] == [user.id]


def _refuse_last_administrator(user: StoredUser) -> FieldRefused:
    problem = f"{user.name!r} is the last active administrator"
    return FieldRefused("name", problem, "make another user an administrator first")


def _store_password(connection: Connection, user: StoredUser, sign_in: str) -> None:
    statement = update(users).where(users.c.id == user.id).values(password=user.password)
    connection.execute(statement)
    connection.execute(delete(sign_ins).where(_is_sign_in_of(user.id), sign_ins.c.id != sign_in))


def _is_sign_in_of(user: str) -> ColumnElement[bool]:
    own_ids = select_token_ids(user)
    return or_(sign_ins.c.token == f"{USER_OWNER_PREFIX}{user}", sign_ins.c.token.in_(own_ids))


def _record(  # noqa: PLR0913, PLR0917 - what an audit log needs
    connection: Connection,
    actor: Actor,
    action: str,
    user: StoredUser,
    at: str,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Add a change to a user to the audit log, and notify all servers."""
    add_audit_row(connection, actor, f"user.{action}", user.name, at=at, detail=detail)
    publish_event(connection, TOKENS_CHANGED, at)
