"""Access tokens and sign-ins in tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, delete, func, insert, literal, or_, select, update
from sqlalchemy.exc import IntegrityError

from skillhall._internal.policy.access.actor import USER_OWNER_PREFIX, Actor
from skillhall._internal.storage.records import (
    TOKENS_CHANGED,
    USE_INTERVAL,
    SignIn,
    StoredToken,
    format_time,
)
from skillhall._internal.storage.sql.audit_rows import add_audit_row
from skillhall._internal.storage.sql.events.event_rows import publish_event
from skillhall._internal.storage.sql.rows import select_fields
from skillhall._internal.storage.sql.tables import (
    sign_ins,
    token_details,
    token_owners,
    tokens,
    users,
)
from skillhall.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement, Connection, Select, Table

    from skillhall._internal.storage.sql.engine import Database

MAX_SIGN_INS = 1_000  # of one token; a new one ends the oldest


class SqlTokenTable:
    """Access tokens in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, *, with_revoked: bool = False, user: str | None = None) -> list[StoredToken]:
        """Return the tokens, or those of a user, oldest first."""
        is_same = tokens.c.id == token_details.c.id
        query = (
            select_fields(token_details)
            .add_columns(func.coalesce(tokens.c.digest, "").label("digest"))
            .add_columns(token_owners.c.user.label("user"))
            .join_from(token_details, tokens, is_same, isouter=with_revoked)
            .outerjoin(token_owners, token_owners.c.token_id == token_details.c.id)
            .order_by(token_details.c.created, token_details.c.id)
        )
        if user is not None:
            query = query.where(token_owners.c.user == user)
        rows = self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [StoredToken(**{**row, "scopes": tuple(row["scopes"].split())}) for row in rows]

    def add(self, token: StoredToken, actor: Actor) -> StoredToken:
        """Add a token and return it. If its owner is a user, it belongs to that user.

        Raises: Conflict if its label is taken, DatabaseUnavailable.
        """
        values = {"id": token.id, "label": token.label, "created": token.created}
        details = {"owner": token.owner, "expires": token.expires, "scopes": " ".join(token.scopes)}

        def work(connection: Connection) -> StoredToken:
            try:
                connection.execute(insert(tokens), {**values, "digest": token.digest})
            except IntegrityError:
                raise Conflict(
                    token.label, "revoke that token first, or choose another label"
                ) from None
            owner = select(users.c.id).where(users.c.name == token.owner)
            user = connection.execute(owner).scalar()
            connection.execute(insert(token_details), {**values, **details})
            if user is not None:
                connection.execute(insert(token_owners), {"token_id": token.id, "user": user})
            detail = {"id": token.id, **details}
            add_audit_row(
                connection, actor, "token.create", token.label, at=token.created, detail=detail
            )
            publish_event(connection, TOKENS_CHANGED, token.created)
            return replace(token, user=user)

        return self._database.write(work)

    def revoke(self, name: str, at: str, user: str | None, actor: Actor) -> bool:
        """Revoke the token with this id or label, and end its sign-ins.

        With `user`, the token must belong to that user. Returns whether it existed.
        Raises: DatabaseUnavailable.
        """
        is_named: ColumnElement[bool] = or_(tokens.c.id == name, tokens.c.label == name)
        if user is not None:
            is_named = and_(is_named, tokens.c.id.in_(select_token_ids(user)))

        def work(connection: Connection) -> bool:
            # Deleting the digest makes servers of older versions reject the token, too.
            query = delete(tokens).where(is_named).returning(tokens.c.id, tokens.c.label)
            labels = {row.id: row.label for row in connection.execute(query)}
            ids = [*labels]
            if ids:
                is_revoked = token_details.c.id.in_(ids)
                connection.execute(update(token_details).where(is_revoked).values(revoked=at))
                connection.execute(delete(sign_ins).where(sign_ins.c.token.in_(ids)))
                for identity, label in labels.items():
                    detail = {"id": identity}
                    add_audit_row(connection, actor, "token.revoke", label, at=at, detail=detail)
                publish_event(connection, TOKENS_CHANGED, at)
            return bool(ids)

        return self._database.write(work)

    def record_uses(self, times: Mapping[str, float]) -> None:
        """Store when tokens were used, by id, once a minute. Raises: DatabaseUnavailable."""
        record_uses(self._database, token_details, times)


class SqlSignInTable:
    """Sign-ins of browsers in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, owner: str | None = None) -> list[SignIn]:
        """Return the sign-ins of a token or a user, or all, the latest first."""
        query = select_fields(sign_ins).order_by(sign_ins.c.created.desc(), sign_ins.c.id)
        if owner is not None:
            query = query.where(_belongs_to(owner))
        rows = self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [SignIn(**row) for row in rows]

    def find(self, digest: str) -> SignIn | None:
        """Return the sign-in whose cookie has this digest, or None."""
        query = select_fields(sign_ins).where(sign_ins.c.digest == digest)
        row = self._database.read(lambda connection: connection.execute(query).mappings().first())
        return None if row is None else SignIn(**row)

    def add(self, sign_in: SignIn, actor: Actor) -> None:
        """Add a sign-in, and delete expired ones. Raises: DatabaseUnavailable."""
        values = {column.key: getattr(sign_in, column.key) for column in sign_ins.columns}
        excess = (
            select(sign_ins.c.id)
            .where(sign_ins.c.token == sign_in.token)
            .order_by(sign_ins.c.created.desc())
            .offset(MAX_SIGN_INS - 1)
        )

        def work(connection: Connection) -> None:
            is_old = or_(
                sign_ins.c.expires <= sign_in.created,
                sign_ins.c.id.in_(connection.execute(excess).scalars().all()),
            )
            connection.execute(delete(sign_ins).where(is_old))
            connection.execute(insert(sign_ins), values)
            detail = {"id": sign_in.id}
            at, name = sign_in.created, actor.name
            add_audit_row(connection, actor, "sign-in", name, at=at, detail=detail)
            publish_event(connection, TOKENS_CHANGED, sign_in.created)

        self._database.write(work)

    def delete(self, owner: str, identity: str, at: str, actor: Actor) -> bool:
        """End a sign-in; return whether its owner had it. Raises: DatabaseUnavailable."""
        query = delete(sign_ins).where(sign_ins.c.id == identity, _belongs_to(owner))

        def work(connection: Connection) -> bool:
            is_deleted = connection.execute(query).rowcount > 0
            if is_deleted:
                detail = {"id": identity}
                add_audit_row(connection, actor, "sign-out", actor.name, at=at, detail=detail)
                publish_event(connection, TOKENS_CHANGED, at)
            return is_deleted

        return self._database.write(work)

    def record_uses(self, times: Mapping[str, float]) -> None:
        """Store when sign-ins were used, by id, once a minute. Raises: DatabaseUnavailable."""
        record_uses(self._database, sign_ins, times)


def _belongs_to(owner: str) -> ColumnElement[bool]:
    own_tokens = select(token_owners.c.token_id).where(
        literal(owner) == literal(USER_OWNER_PREFIX).concat(token_owners.c.user)
    )
    return or_(sign_ins.c.token == owner, sign_ins.c.token.in_(own_tokens))


def select_token_ids(user: str) -> Select[tuple[str]]:
    """Return a query for the ids of the tokens of a user, revoked ones included."""
    return select(token_owners.c.token_id).where(token_owners.c.user == user)


def record_uses(database: Database, table: Table, times: Mapping[str, float]) -> None:
    """Store when rows of a table were used, by id, once a minute. Raises: DatabaseUnavailable."""
    # The condition limits the writes of all servers together.
    is_due = or_(table.c.used.is_(None), table.c.used <= bindparam("before"))
    statement = update(table).where(table.c.id == bindparam("row_id"), is_due)
    statement = statement.values(used=bindparam("at"))
    rows: list[dict[str, Any]] = [
        {"row_id": identity, "at": format_time(at), "before": format_time(at - USE_INTERVAL)}
        for identity, at in times.items()
    ]
    database.write(lambda connection: connection.execute(statement, rows))
