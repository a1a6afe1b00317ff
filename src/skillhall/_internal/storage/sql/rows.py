"""Conversion between table rows and records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from typing import TypeAlias

    from sqlalchemy import Row as SqlRow

    Row: TypeAlias = SqlRow[Any]
    Values: TypeAlias = dict[str, object]


def to_session(row: Row) -> Session:
    """Convert a row of `sessions`."""
    return Session(
        id=row.id,
        name=row.name,
        budgets=_to_budgets(row),
        version=row.version,
        revision=row.revision,
        created=row.created_at,
        updated=row.updated_at,
    )


def to_session_row(session: Session) -> Values:
    """Convert a session to a row of `sessions`."""
    return {
        "id": session.id,
        "name": session.name,
        **_to_budget_columns(session.budgets),
        "version": session.version,
        "revision": session.revision,
        "created_at": session.created,
        "updated_at": session.updated,
    }


def to_content(row: Row) -> BlockContent:
    """Convert the content columns of any table with blocks."""
    skill = None
    if row.skill_name is not None:
        skill = SkillOrigin(
            row.skill_name,
            row.skill_description or "",
            row.source_type or "",
            row.source_ref or "",
        )
    return BlockContent(row.type, Zone(row.zone), row.content, row.tokens, skill)


def to_content_row(content: BlockContent) -> Values:
    """Convert content to the columns shared by all tables with blocks."""
    skill = content.skill
    return {
        "type": content.type,
        "zone": content.zone.value,
        "content": content.text,
        "tokens": content.tokens,
        "bytes": len(content.text.encode("utf-8")),
        "skill_name": skill.name if skill else None,
        "skill_description": skill.description if skill else None,
        "source_type": skill.source_type if skill else None,
        "source_ref": skill.source_ref if skill else None,
    }


def to_block(row: Row) -> Block:
    """Convert a row of `blocks`."""
    return Block(
        id=row.id,
        session=row.session_id,
        position=row.position,
        content=to_content(row),
        version=row.version,
        created=row.created_at,
        updated=row.updated_at,
        deleted=row.deleted,
    )


def to_block_row(block: Block) -> Values:
    """Convert a block to a row of `blocks`."""
    return {
        "id": block.id,
        "session_id": block.session,
        "position": block.position,
        **to_content_row(block.content),
        "version": block.version,
        "created_at": block.created,
        "updated_at": block.updated,
        "deleted": block.deleted,
    }


def to_template(row: Row) -> Template:
    """Convert a row of `templates`."""
    return Template(
        id=row.id,
        name=row.name,
        description=row.description,
        budgets=_to_budgets(row),
        version=row.version,
        created=row.created_at,
        updated=row.updated_at,
    )


def to_template_row(template: Template) -> Values:
    """Convert a template to a row of `templates`."""
    return {
        "id": template.id,
        "name": template.name,
        "description": template.description,
        **_to_budget_columns(template.budgets),
        "version": template.version,
        "created_at": template.created,
        "updated_at": template.updated,
    }


def to_snapshot(row: Row) -> SessionSnapshot:
    """Convert a row of `snapshots`."""
    return SessionSnapshot(
        id=row.id,
        session=row.session_id,
        name=row.name,
        budgets=_to_budgets(row),
        revision=row.revision,
        created=row.created_at,
        automatic=bool(row.automatic),
    )


def to_snapshot_row(snapshot: SessionSnapshot) -> Values:
    """Convert a snapshot to a row of `snapshots`."""
    return {
        "id": snapshot.id,
        "session_id": snapshot.session,
        "name": snapshot.name,
        **_to_budget_columns(snapshot.budgets),
        "revision": snapshot.revision,
        "automatic": int(snapshot.automatic),
        "created_at": snapshot.created,
    }


def to_event(row: Row) -> Event:
    """Convert a row of `events`."""
    data = json.loads(row.data)
    return Event(row.kind, row.subject, row.session_id, row.revision, data, row.at, row.seq)


def to_event_row(event: Event) -> Values:
    """Convert an event to a row of `events`; the table assigns `seq`."""
    return {
        "session_id": event.session,
        "revision": event.revision,
        "kind": event.kind,
        "subject": event.subject,
        "data": json.dumps(dict(event.data), ensure_ascii=False, separators=(",", ":")),
        "at": event.at,
    }


def _to_budgets(row: Row) -> SessionBudgets:
    return SessionBudgets(
        row.budget_permanent, row.budget_stable, row.budget_working, row.budget_total
    )


def _to_budget_columns(budgets: SessionBudgets) -> Values:
    return {
        "budget_permanent": budgets.permanent,
        "budget_stable": budgets.stable,
        "budget_working": budgets.working,
        "budget_total": budgets.total,
    }
