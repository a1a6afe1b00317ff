"""Queries of the workspace as SQL statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import func, select

from skillhall._internal.storage.records import Zone, ZoneSize
from skillhall._internal.storage.sql.rows import (
    select_fields,
    to_block,
    to_content,
    to_event,
    to_session,
    to_snapshot,
    to_template,
)
from skillhall._internal.storage.sql.tables import (
    blocks,
    events,
    sessions,
    snapshot_blocks,
    snapshots,
    template_blocks,
    templates,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import ColumnElement, Connection, Row, Select

    from skillhall._internal.storage.records import (
        Block,
        BlockContent,
        Event,
        Session,
        SessionSnapshot,
        Template,
    )

_T = TypeVar("_T")


class SqlWorkspaceReader:
    """Queries in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def session(self, identity: str) -> Session | None:
        """Return the session with this id."""
        query = select_fields(sessions).where(sessions.c.id == identity)
        return self._find_one(to_session, query)

    def sessions(self, after: str, limit: int) -> list[Session]:
        """Return sessions after the id `after`, sorted by id."""
        query = select_fields(sessions).where(sessions.c.id > after)
        return self._find_all(to_session, query.order_by(sessions.c.id).limit(limit))

    def block(self, session: str, identity: str) -> Block | None:
        """Return a block of a session, deleted or not."""
        conditions = (blocks.c.id == identity, blocks.c.session == session)
        return self._find_one(to_block, select_fields(blocks).where(*conditions))

    def blocks(
        self, session: str, zone: Zone | None = None, kind: str | None = None
    ) -> list[Block]:
        """Return the blocks of a session that are not deleted, in order."""
        query = select_fields(blocks).where(*_live_block_filters(session, zone))
        if kind is not None:
            query = query.where(blocks.c.type == kind)
        return self._find_all(to_block, query.order_by(blocks.c.zone, blocks.c.position))

    def skill_blocks(self, session: str, name: str) -> list[Block]:
        """Return the blocks of a skill that are not deleted, in order."""
        filters = (*_live_block_filters(session), blocks.c.skill_name == name)
        # Sorted in Python: with ORDER BY, SQLite would scan every block of the session.
        found = self._find_all(to_block, select_fields(blocks).where(*filters))
        return sorted(found, key=lambda block: (block.zone, block.position))

    def deleted_blocks(self, session: str) -> list[Block]:
        """Return the blocks that can be restored, last deleted first."""
        filters = (blocks.c.session == session, blocks.c.deleted.is_not(None))
        query = select_fields(blocks).where(*filters)
        return self._find_all(to_block, query.order_by(blocks.c.deleted.desc(), blocks.c.id))

    def zone_sizes(self, session: str) -> dict[Zone, ZoneSize]:
        """Return the size of each zone that is not empty."""
        columns = (func.count(), func.sum(blocks.c.tokens), func.sum(blocks.c.bytes))
        query = select(blocks.c.zone, *columns).where(*_live_block_filters(session))
        # PostgreSQL's SUM returns a Decimal.
        rows = self._connection.execute(query.group_by(blocks.c.zone))
        return {Zone(row[0]): ZoneSize(row[1], int(row[2]), int(row[3])) for row in rows}

    def count_blocks(self, session: str) -> int:
        """Return the number of blocks that are not deleted."""
        query = select(func.count()).select_from(blocks).where(*_live_block_filters(session))
        return int(self._connection.execute(query).scalar_one())

    def next_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        """Return id and position of the next block; of the first one for ""."""
        query = _select_positions(session, zone).where(blocks.c.position > position)
        return self._find_one(_to_position, query.order_by(blocks.c.position).limit(1))

    def previous_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        """Return id and position of the previous block; of the last one for ""."""
        query = _select_positions(session, zone)
        if position:
            query = query.where(blocks.c.position < position)
        return self._find_one(_to_position, query.order_by(blocks.c.position.desc()).limit(1))

    def list_positions(self, session: str, zone: Zone) -> list[tuple[str, str]]:
        """Return ids and positions of a zone, in order."""
        query = _select_positions(session, zone).order_by(blocks.c.position)
        return self._find_all(_to_position, query)

    def templates(self) -> list[Template]:
        """Return all templates, sorted by name."""
        records = self._find_all(to_template, select_fields(templates))
        return sorted(records, key=lambda template: (template.name, template.id))

    def template(self, identity: str) -> Template | None:
        """Return the template with this id."""
        query = select_fields(templates).where(templates.c.id == identity)
        return self._find_one(to_template, query)

    def find_template_by_name(self, name: str) -> Template | None:
        """Return the template with this name."""
        query = select_fields(templates).where(templates.c.name == name)
        return self._find_one(to_template, query)

    def template_contents(self, identity: str) -> list[BlockContent]:
        """Return the contents of a template's blocks, in order."""
        query = select_fields(template_blocks).where(template_blocks.c.template_id == identity)
        return self._find_all(to_content, query.order_by(template_blocks.c.ordinal))

    def snapshots(self, session: str) -> list[SessionSnapshot]:
        """Return the snapshots of a session, newest first."""
        query = select_fields(snapshots).where(snapshots.c.session == session)
        order = (snapshots.c.revision.desc(), snapshots.c.id)
        return self._find_all(to_snapshot, query.order_by(*order))

    def snapshot(self, session: str, identity: str) -> SessionSnapshot | None:
        """Return a snapshot of a session."""
        conditions = (snapshots.c.id == identity, snapshots.c.session == session)
        return self._find_one(to_snapshot, select_fields(snapshots).where(*conditions))

    def snapshot_blocks(self, identity: str) -> list[Block]:
        """Return the blocks of a snapshot, in order."""
        session = snapshots.c.session.label("session")
        query = (
            select_fields(snapshot_blocks, without="snapshot_id")
            .add_columns(session)
            .join(snapshots)
            .where(snapshot_blocks.c.snapshot_id == identity)
            .order_by(snapshot_blocks.c.zone, snapshot_blocks.c.position)
        )
        return self._find_all(to_block, query)

    def events(self, after: int, limit: int, session: str | None = None) -> list[Event]:
        """Return the events after a number, in order."""
        query = select_fields(events).where(events.c.seq > after)
        if session is not None:
            query = query.where(events.c.session == session)
        return self._find_all(to_event, query.order_by(events.c.seq).limit(limit))

    def event_range(self) -> tuple[int, int]:
        """Return the numbers of the first and last stored event, or zeros."""
        query = select(func.min(events.c.seq), func.max(events.c.seq))
        first, last = self._connection.execute(query).one()
        return int(first or 0), int(last or 0)

    def _find_one(self, convert: Callable[[Row[Any]], _T], query: Select[Any]) -> _T | None:
        row = self._connection.execute(query).first()
        return None if row is None else convert(row)

    def _find_all(self, convert: Callable[[Row[Any]], _T], query: Select[Any]) -> list[_T]:
        return [convert(row) for row in self._connection.execute(query)]


def _live_block_filters(session: str, zone: Zone | None = None) -> list[ColumnElement[bool]]:
    filters: list[ColumnElement[bool]] = [
        blocks.c.session == session,
        blocks.c.deleted.is_(None),
    ]
    if zone is not None:
        filters.append(blocks.c.zone == zone.value)
    return filters


def _select_positions(session: str, zone: Zone) -> Select[Any]:
    query = select(blocks.c.id, blocks.c.position)
    return query.where(*_live_block_filters(session, zone))


def _to_position(row: Row[Any]) -> tuple[str, str]:
    return row.id, row.position
