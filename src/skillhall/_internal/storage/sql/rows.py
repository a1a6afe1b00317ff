"""Conversion between table rows and records.

The keys of the columns are the names of the fields. Three parts of records are spread over columns
of their own: budgets, the content of a block, and the skill of a content.
"""

from __future__ import annotations

import json
from dataclasses import fields
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
    from sqlalchemy import Row, Select, Table

    Values: TypeAlias = dict[str, Any]

_CONTENT = [field.name for field in fields(BlockContent) if field.name != "skill"]


def select_fields(table: Table, without: str = "") -> Select[Any]:
    """Select the columns of a table, named by their keys, without one of them."""
    return select(*(column.label(column.key) for column in table.c if column.key != without))


def to_session(row: Row[Any]) -> Session:
    """Convert a row of `sessions`."""
    return Session(**_nest_budgets(row))


def to_template(row: Row[Any]) -> Template:
    """Convert a row of `templates`."""
    return Template(**_nest_budgets(row))


def to_snapshot(row: Row[Any]) -> SessionSnapshot:
    """Convert a row of `snapshots`."""
    values = _nest_budgets(row)
    return SessionSnapshot(**{**values, "automatic": bool(values["automatic"])})


def to_budgets_row(record: Session | Template | SessionSnapshot) -> Values:
    """Convert a record with budgets to a row of its table."""
    values = _read_fields(record)
    budgets = _read_fields(values.pop("budgets")).values()
    values |= zip(BUDGET_COLUMNS, budgets, strict=True)
    if isinstance(record, SessionSnapshot):
        values["automatic"] = int(record.automatic)  # PostgreSQL converts no booleans
    return values


def to_block(row: Row[Any]) -> Block:
    """Convert a row of `blocks`."""
    values = row._asdict()
    return Block(content=_pop_content(values), **values)


def to_block_row(block: Block) -> Values:
    """Convert a block to a row of `blocks`."""
    values = _read_fields(block)
    return {**values, **to_content_row(values.pop("content"))}


def to_content(row: Row[Any]) -> BlockContent:
    """Convert the content columns of any table with blocks."""
    return _pop_content(row._asdict())


def to_content_row(content: BlockContent) -> Values:
    """Convert content to the columns shared by all tables with blocks."""
    values = {name: getattr(content, name) for name in _CONTENT}
    values |= {"zone": content.zone.value, "bytes": len(content.text.encode("utf-8"))}
    for column, field in SKILL_COLUMNS.items():
        values[column] = getattr(content.skill, field) if content.skill else None
    return values


def to_event(row: Row[Any]) -> Event:
    """Convert a row of `events`."""
    values = row._asdict()
    return Event(**{**values, "data": json.loads(values["data"])})


def to_event_row(event: Event) -> Values:
    """Convert an event to a row of `events`; the table assigns `seq`."""
    values = _read_fields(event)
    del values["seq"]
    data = json.dumps(dict(event.data), ensure_ascii=False, separators=(",", ":"))
    return {**values, "data": data}


def _read_fields(record: DataclassInstance) -> Values:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _nest_budgets(row: Row[Any]) -> Values:
    values = row._asdict()
    values["budgets"] = SessionBudgets(*map(values.pop, BUDGET_COLUMNS))
    return values


def _pop_content(values: Values) -> BlockContent:
    """Remove the columns of a content from a row and return them as a record."""
    del values["bytes"]
    skill = {field: values.pop(column) for column, field in SKILL_COLUMNS.items()}
    content = {name: values.pop(name) for name in _CONTENT}
    content["zone"] = Zone(content["zone"])
    if skill["name"] is not None:
        content["skill"] = SkillOrigin(**{field: text or "" for field, text in skill.items()})
    return BlockContent(**content)
