"""Conversion between table rows and records.

A row is a dictionary keyed by column key, which is the field name; converting a row modifies the
dictionary. Three parts of a record are spread over several columns: budgets, a block's content, and
the skill that the content comes from.
"""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from skillhall._internal.storage.records import (
    Block,
    BlockContent,
    Event,
    Session,
    SessionBudgets,
    SessionSnapshot,
    SkillOrigin,
    Template,
    Zone,
)
from skillhall._internal.storage.sql.tables import BUDGET_COLUMNS, SKILL_COLUMNS

if TYPE_CHECKING:
    from typing import TypeAlias

    from _typeshed import DataclassInstance
    from sqlalchemy import Select, Table

    Values: TypeAlias = dict[str, Any]

_CONTENT = [field.name for field in fields(BlockContent) if field.name != "skill"]


@cache
def select_fields(table: Table, without: str = "") -> Select[Any]:
    """Return a query for the columns of a table, labeled by key, except `without`."""
    return select(*(column.label(column.key) for column in table.c if column.key != without))


def to_session(row: Values) -> Session:
    """Convert a row of `sessions`."""
    return Session(**_nest_budgets(row))


def to_template(row: Values) -> Template:
    """Convert a row of `templates`."""
    return Template(**_nest_budgets(row))


def to_snapshot(row: Values) -> SessionSnapshot:
    """Convert a row of `snapshots`."""
    values = _nest_budgets(row)
    return SessionSnapshot(**{**values, "automatic": bool(values["automatic"])})


def to_budgets_row(record: Session | Template | SessionSnapshot) -> Values:
    """Convert a record with budgets to a row of its table."""
    values = _read_fields(record)
    budgets = _read_fields(values.pop("budgets")).values()
    values |= zip(BUDGET_COLUMNS, budgets, strict=True)
    if isinstance(record, SessionSnapshot):
        values["automatic"] = int(record.automatic)  # PostgreSQL does not convert booleans
    return values


def to_block(row: Values) -> Block:
    """Convert a row of `blocks`, or of `snapshot_blocks` plus the session's id."""
    return Block(content=_pop_content(row), **row)


def to_block_row(block: Block) -> Values:
    """Convert a block to a row of `blocks`."""
    values = _read_fields(block)
    return {**values, **to_content_row(values.pop("content"))}


def to_content(row: Values) -> BlockContent:
    """Convert the content columns of any table with blocks."""
    return _pop_content(row)


def to_content_row(content: BlockContent) -> Values:
    """Convert content to the columns shared by all tables with blocks."""
    values = {name: getattr(content, name) for name in _CONTENT}
    values |= {"zone": content.zone.value, "bytes": len(content.text.encode("utf-8"))}
    for column, field in SKILL_COLUMNS.items():
        values[column] = getattr(content.skill, field) if content.skill else None
    return values


def to_event(row: Values) -> Event:
    """Convert a row of `events`."""
    return Event(**{**row, "data": json.loads(row["data"])})


def to_event_row(event: Event) -> Values:
    """Convert an event to a row of `events`; the table assigns `seq`."""
    values = _read_fields(event)
    del values["seq"]
    data = json.dumps(dict(event.data), ensure_ascii=False, separators=(",", ":"))
    return {**values, "data": data}


def _read_fields(record: DataclassInstance) -> Values:
    return {name: getattr(record, name) for name in _list_fields(type(record))}


@cache
def _list_fields(record_type: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record_type))


def _nest_budgets(row: Values) -> Values:
    row["budgets"] = SessionBudgets(*map(row.pop, BUDGET_COLUMNS))
    return row


def _pop_content(values: Values) -> BlockContent:
    """Remove the content columns from a row and return them as a record."""
    del values["bytes"]
    skill = {field: values.pop(column) for column, field in SKILL_COLUMNS.items()}
    content = {name: values.pop(name) for name in _CONTENT}
    content["zone"] = Zone(content["zone"])
    if skill["name"] is not None:
        content["skill"] = SkillOrigin(**{field: text or "" for field, text in skill.items()})
    return BlockContent(**content)
