"""Access tokens and sign-ins in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from skillhall._internal.storage.records import (
    TOKENS_CHANGED,
    USE_INTERVAL,
    SignIn,
    StoredToken,
    format_time,
)
from skillhall._internal.storage.sql.events.event_rows import publish_event
from skillhall._internal.storage.sql.rows import select_fields
from skillhall._internal.storage.sql.tables import sign_ins, token_details, tokens
from skillhall.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Table

    from skillhall._internal.storage.sql.engine import Database

MAX_SIGN_INS = 1_000  # of one token; a new one ends the oldest


class SqlTokenTable:
    """Access tokens in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, *, with_revoked: bool = False) -> list[StoredToken]:
        """Return the tokens, oldest first."""
        is_same = tokens.c.id == token_details.c.id
        query = (
            select_fields(token_details)
            .add_columns(func.coalesce(tokens.c.digest, "").label("digest"))
            .join_from(token_details, tokens, is_same, isouter=with_revoked)
            .order_by(token_details.c.created, token_details.c.id)
        )
        rows = self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [StoredToken(**{**row, "scopes": tuple(row["scopes"].split())}) for row in rows]

    def add(self, token: StoredToken) -> None:
        """Add a token. Raises: Conflict if its label is taken, DatabaseUnavailable."""
        values = {"id": token.id, "label": token.label, "created": token.created}
        details = {"owner": token.owner, "expires": token.expires, "scopes": " ".join(token.scopes)}

        def work(connection: Connection) -> None:
            try:
                connection.execute(insert(tokens), {**values, "digest": token.digest})
            except IntegrityError:
                raise Conflict(
                    token.label, "revoke that token first, or choose another label"
                ) from None
            connection.execute(insert(token_details), {**values, **details})
            publish_event(connection, TOKENS_CHANGED, token.created)

        self._database.write(work)

    def revoke(self, name: str, at: str) -> bool:
        """Revoke the token with this id or label, and end its sign-ins.

        Returns whether it existed. Raises: DatabaseUnavailable.
        """
        is_named = or_(tokens.c.id == name, tokens.c.label == name)

        def work(connection: Connection) -> bool:
            # Deleting the digest makes servers of older versions reject the token, too.
            query = delete(tokens).where(is_named).returning(tokens.c.id)
            ids = connection.execute(query).scalars().all()
            if ids:
                is_revoked = token_details.c.id.in_(ids)
                connection.execute(update(token_details).where(is_revoked).values(revoked=at))
                connection.execute(delete(sign_ins).where(sign_ins.c.token.in_(ids)))
                publish_event(connection, TOKENS_CHANGED, at)
            return bool(ids)

        return self._database.write(work)

    def record_uses(self, times: Mapping[str, float]) -> None:
        """Store when tokens were used, by id, once a minute. Raises: DatabaseUnavailable."""
        _record_uses(self._database, token_details, times)


class SqlSignInTable:
    """Sign-ins of browsers in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, token: str | None = None) -> list[SignIn]:
        """Return the sign-ins of a token, or of all tokens, the latest first."""
        query = select_fields(sign_ins).order_by(sign_ins.c.created.desc(), sign_ins.c.id)
        if token is not None:
            query = query.where(sign_ins.c.token == token)
        rows = self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [SignIn(**row) for row in rows]

    def find(self, digest: str) -> SignIn | None:
        """Return the sign-in whose cookie has this digest, or None."""
        query = select_fields(sign_ins).where(sign_ins.c.digest == digest)
        row = self._database.read(lambda connection: connection.execute(query).mappings().first())
        return None if row is None else SignIn(**row)

    def add(self, sign_in: SignIn) -> None:
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
            publish_event(connection, TOKENS_CHANGED, sign_in.created)

        self._database.write(work)

    def delete(self, token: str, identity: str, at: str) -> bool:
        """End a sign-in of a token; return whether it existed. Raises: DatabaseUnavailable."""
        query = delete(sign_ins).where(sign_ins.c.id == identity, sign_ins.c.token == token)

        def work(connection: Connection) -> bool:
            is_deleted = connection.execute(query).rowcount > 0
            if is_deleted:
                publish_event(connection, TOKENS_CHANGED, at)
            return is_deleted

        return self._database.write(work)

    def record_uses(self, times: Mapping[str, float]) -> None:
        """Store when sign-ins were used, by id, once a minute. Raises: DatabaseUnavailable."""
        _record_uses(self._database, sign_ins, times)


def _record_uses(database: Database, table: Table, times: Mapping[str, float]) -> None:
    # The condition limits the writes of all servers together.
    is_due = or_(table.c.used.is_(None), table.c.used <= bindparam("before"))
    statement = update(table).where(table.c.id == bindparam("row_id"), is_due)
    statement = statement.values(used=bindparam("at"))
    rows: list[dict[str, Any]] = [
        {"row_id": identity, "at": format_time(at), "before": format_time(at - USE_INTERVAL)}
        for identity, at in times.items()
    ]
    database.write(lambda connection: connection.execute(statement, rows))
