"""Queries on the audit log, for lists and exports."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import or_, select

from skillhall._internal.storage.audit.audit_chain import to_audit_row, verify_chain
from skillhall._internal.storage.sql.audit_rows import format_audit_time
from skillhall._internal.storage.sql.tables import audit, audit_seals
from skillhall.errors import FieldRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Connection

    from skillhall._internal.storage.audit.audit_chain import ChainReport
    from skillhall._internal.storage.sql.engine import Database

MAX_ROWS = 1_000  # per page
COLUMNS = (*(column.name for column in audit.columns), "position", "hash")


class AuditFilter(NamedTuple):
    """Which rows to return. Empty values match all rows."""

    actor: str = ""  # name of a user, or user/token
    action: str = ""  # an action such as skill.edit, or the start of one such as skill
    subject: str = ""
    outcome: str = ""
    via: str = ""
    since: str = ""  # time or date, inclusive
    until: str = ""  # time or date, exclusive


_TIMES = ("since", "until")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
NO_FILTER = AuditFilter()


class AuditLog:
    """The audit log of a database, for reading."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def verify(self, expected_head: str = "") -> ChainReport:
        """Verify the hash chain. Raises: DatabaseUnavailable."""
        return self.database.read(lambda connection: verify_chain(connection, expected_head))

    @staticmethod
    def parse_filter(now: datetime, **values: str) -> AuditFilter:
        """Parse the values of a filter, by name. Raises: FieldRefused."""
        times = {name: _parse_time(name, values[name], now) for name in _TIMES if values.get(name)}
        return AuditFilter(**{**values, **times})

    @staticmethod
    def format_pages(pages: Iterable[Sequence[dict[str, Any]]], kind: str) -> Iterator[str]:
        """Yield pages of rows as JSON Lines, or as CSV with a header."""
        if kind == "csv":
            yield _format_csv([COLUMNS])
        for page in pages:
            if kind == "csv":
                yield _format_csv(map(_to_csv_row, page))
            else:
                yield "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in page)

    def newest(
        self, filter_: AuditFilter = NO_FILTER, *, before: int = 0, limit: int = 100
    ) -> list[dict[str, Any]]:
        """Return up to `limit` rows, newest first, below the number `before` if set.

        Raises: DatabaseUnavailable.
        """
        condition = [audit.c.id < before] if before else []
        query = _select_rows(filter_).where(*condition).order_by(audit.c.id.desc())
        return self.database.read(lambda connection: _read_rows(connection, query.limit(limit)))

    def oldest(
        self, filter_: AuditFilter = NO_FILTER, *, after: int = 0, limit: int = MAX_ROWS
    ) -> list[dict[str, Any]]:
        """Return up to `limit` rows with numbers above `after`, the oldest first.

        Raises: DatabaseUnavailable.
        """
        query = _select_rows(filter_).where(audit.c.id > after).order_by(audit.c.id)
        return self.database.read(lambda connection: _read_rows(connection, query.limit(limit)))

    def pages(self, filter_: AuditFilter = NO_FILTER) -> Iterator[list[dict[str, Any]]]:
        """Yield all rows in pages, the oldest first. Raises: DatabaseUnavailable."""
        after = 0
        while rows := self.oldest(filter_, after=after):
            yield rows
            after = rows[-1]["id"]


def _parse_time(name: str, text: str, now: datetime) -> str:
    """Parse a time for a filter.

    A date means its start; a duration counts back from now.
    """
    text = text.strip()
    match = re.fullmatch(r"([1-9][0-9]{0,4})([mhdw])", text)
    try:
        if match is not None:
            return format_audit_time(now - timedelta(**{_UNITS[match[2]]: int(match[1])}))
        parsed = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise FieldRefused(name, "must be a date, a time or a duration such as 7d") from None
    return format_audit_time(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))


def _format_csv(rows: Iterable[Iterable[object]]) -> str:
    stream = io.StringIO()
    csv.writer(stream).writerows(rows)
    return stream.getvalue()


def _to_csv_row(row: dict[str, Any]) -> list[object]:
    values = {**row, "detail": json.dumps(row["detail"], ensure_ascii=False)}
    return [_escape_formula(values[name]) for name in COLUMNS]


def _escape_formula(value: object) -> object:
    """Return a value that spreadsheets treat as text, not as a formula."""
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value


def _select_rows(filter_: AuditFilter) -> Any:  # noqa: ANN401 - a query of many columns
    user, _, token = filter_.actor.partition("/")
    conditions = {
        audit.c.actor: user,
        audit.c.token: token,
        audit.c.subject: filter_.subject,
        audit.c.outcome: filter_.outcome,
        audit.c.via: filter_.via,
    }
    query = select(audit, audit_seals.c.position, audit_seals.c.hash).join_from(
        audit, audit_seals, audit_seals.c.audit_id == audit.c.id, isouter=True
    )
    query = query.where(*(column == value for column, value in conditions.items() if value))
    if filter_.action:
        is_group = audit.c.action.startswith(f"{filter_.action}.", autoescape=True)
        query = query.where(or_(audit.c.action == filter_.action, is_group))
    if filter_.since:
        query = query.where(audit.c.at >= filter_.since)
    return query.where(audit.c.at < filter_.until) if filter_.until else query


def _read_rows(connection: Connection, query: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - as above
    return [
        {**to_audit_row(row), "position": row["position"], "hash": row["hash"]}
        for row in connection.execute(query).mappings()
    ]
