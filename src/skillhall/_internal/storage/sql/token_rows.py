"""Access tokens in a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, or_
from sqlalchemy.exc import IntegrityError

from skillhall._internal.storage.records import TOKENS_CHANGED, StoredToken
from skillhall._internal.storage.sql.event_rows import publish_event
from skillhall._internal.storage.sql.rows import select_fields
from skillhall._internal.storage.sql.tables import tokens
from skillhall.errors import Conflict

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from skillhall._internal.storage.sql.engine import Database


class SqlTokenTable:
    """Access tokens in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[StoredToken]:
        """Return all tokens, oldest first."""
        query = select_fields(tokens).order_by(tokens.c.created, tokens.c.id)
        rows = self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [StoredToken(**row) for row in rows]

    def add(self, token: StoredToken) -> None:
        """Add a token. Raises: Conflict if its label is taken, DatabaseUnavailable."""

        def work(connection: Connection) -> None:
            try:
                connection.execute(insert(tokens), asdict(token))
            except IntegrityError:
                raise Conflict(
                    token.label, "revoke that token first, or choose another label"
                ) from None
            publish_event(connection, TOKENS_CHANGED, token.created)

        self._database.write(work)

    def delete(self, name: str, at: str) -> bool:
        """Delete the token with this id or label; return whether it existed.

        Raises: DatabaseUnavailable.
        """
        condition = or_(tokens.c.id == name, tokens.c.label == name)

        def work(connection: Connection) -> bool:
            is_deleted = connection.execute(delete(tokens).where(condition)).rowcount > 0
            if is_deleted:
                publish_event(connection, TOKENS_CHANGED, at)
            return is_deleted

        return self._database.write(work)
