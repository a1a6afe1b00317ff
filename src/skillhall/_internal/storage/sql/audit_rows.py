"""Audit log in a table: rows are added in the transaction of the change that they record."""

from __future__ import annotations

import json
import secrets
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import insert, text

from skillhall._internal.storage.sql.tables import audit, audit_seals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection

    from skillhall._internal.policy.access.actor import Actor, AuditedChange

MAX_TEXT = 500  # characters of a value, which may come from outside
MAX_DETAILS = 20


def add_audit_row(  # noqa: PLR0913 - one for each column
    connection: Connection,
    actor: Actor,
    action: str,
    subject: str,
    *,
    at: str,
    digest_before: str = "",
    digest_after: str = "",
    outcome: str = "done",
    detail: Mapping[str, object] | None = None,
) -> None:
    """Add a row to the audit log in the open transaction, before its events.

    `action` is a name such as `skill.edit`, `subject` the id of the changed thing, `at` a time in
    ISO 8601, `outcome` is `done` or `refused`. Long texts are shortened. Pass neither contents nor
    secrets.
    """
    with suppress(ValueError):
        at = format_audit_time(datetime.fromisoformat(at))
    details = {name: _shorten_detail(value) for name, value in (detail or {}).items()}
    texts = {
        "at": at,
        "actor": actor.user,
        "token": actor.token,
        "via": actor.via,
        "address": actor.address,
        "request_id": actor.request_id,
        "action": action,
        "subject": subject,
        "digest_before": digest_before,
        "digest_after": digest_after,
        "outcome": outcome,
    }
    row: dict[str, object] = {name: _shorten(value) for name, value in texts.items()}
    row["detail"] = json.dumps(dict([*details.items()][:MAX_DETAILS]), sort_keys=True)
    if connection.dialect.name == "postgresql":
        # Until the commit, a row has a negative number, which no other transaction can see.
        row["id"] = -1 - secrets.randbits(62)
    connection.execute(insert(audit), row)


def add_change_rows(
    connection: Connection,
    change: AuditedChange,
    at: str,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Add a row for each subject of a change."""
    for subject, (before, after) in change.digests.items():
        add_audit_row(
            connection,
            change.actor,
            change.action,
            subject,
            at=at,
            digest_before=before,
            digest_after=after,
            detail=detail,
        )


def format_audit_time(time: datetime) -> str:
    """Format a time for rows: in UTC, to the millisecond. The results sort as text."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def allow_audit_deletion(connection: Connection) -> Iterator[None]:
    """Let the open transaction delete rows of the audit log, for pruning and restoring."""
    if connection.dialect.name == "postgresql":
        setting = "SELECT set_config('skillhall.audit_deletion', :value, true)"
        connection.execute(text(setting), {"value": "on"})
        yield
        connection.execute(text(setting), {"value": "off"})
        return
    query = text(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN (:a, :b)"
    )
    triggers = connection.execute(query, {"a": audit.name, "b": audit_seals.name}).all()
    for name, _ in triggers:
        connection.exec_driver_sql(f'DROP TRIGGER "{name}"')
    yield
    for _, definition in triggers:
        connection.exec_driver_sql(definition)


def _shorten_detail(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return _shorten(str(value))


def _shorten(value: str) -> str:
    """Return a text that every database can store."""
    return value[:MAX_TEXT].encode("utf-8", "replace").decode().replace("\0", "�")
