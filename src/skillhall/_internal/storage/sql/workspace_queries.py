"""Queries of the workspace as SQL statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from skillhall._internal.storage.records import Block, Zone, ZoneSize
from skillhall._internal.storage.sql.rows import (
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
    from sqlalchemy import ColumnElement, Connection, Select

    from skillhall._internal.storage.records import (
        BlockContent,
        Event,
        Session,
        SessionSnapshot,
        Template,
    )
    from skillhall._internal.storage.sql.rows import Row


class SqlWorkspaceReader:
    """Queries in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def session(self, identity: str) -> Session | None:
        """Return the session with this id."""
        row = self._fetch_one(select(sessions).where(sessions.c.id == identity))
        return None if row is None else to_session(row)

    def sessions(self, after: str, limit: int) -> list[Session]:
        """Return sessions after the id `after`, sorted by id."""
        query = select(sessions).where(sessions.c.id > after).order_by(sessions.c.id).limit(limit)
        return [to_session(row) for row in self._fetch_all(query)]

    def block(self, session: str, identity: str) -> Block | None:
        """Return a block of a session, deleted or not."""
        row = self._fetch_one(
            select(blocks).where(blocks.c.id == identity, blocks.c.session_id == session)
        )
        return None if row is None else to_block(row)

    def blocks(
        self, session: str, zone: Zone | None = None, kind: str | None = None
    ) -> list[Block]:
        """Return the blocks of a session that are not deleted, in order."""
        query = select(blocks).where(*_live_block_filters(session, zone))
        if kind is not None:
            query = query.where(blocks.c.type == kind)
        return [to_block(row) for row in self._fetch_all(_order_by_position(query))]

    def skill_blocks(self, session: str, name: str) -> list[Block]:
        """Return the blocks of a skill that are not deleted, in order."""
        query = select(blocks).where(*_live_block_filters(session), blocks.c.skill_name == name)
        # Sorted in Python: with ORDER BY, SQLite would scan every block of the session.
        skill_blocks = [to_block(row) for row in self._fetch_all(query)]
        return sorted(skill_blocks, key=lambda block: (block.zone, block.position))

    def deleted_blocks(self, session: str) -> list[Block]:
        """Return the blocks that can be restored, last deleted first."""
        query = select(blocks).where(blocks.c.session_id == session, blocks.c.deleted.is_not(None))
        rows = self._fetch_all(query.order_by(blocks.c.deleted.desc(), blocks.c.id))
        return [to_block(row) for row in rows]

    def zone_sizes(self, session: str) -> dict[Zone, ZoneSize]:
        """Return the size of each zone that is not empty."""
        query = (
            select(
                blocks.c.zone,
                func.count().label("number"),
                func.sum(blocks.c.tokens).label("tokens"),
                func.sum(blocks.c.bytes).label("size"),
            )
            .where(*_live_block_filters(session))
            .group_by(blocks.c.zone)
        )
        # PostgreSQL's SUM returns a Decimal.
        return {
            Zone(row.zone): ZoneSize(row.number, int(row.tokens), int(row.size))
            for row in self._fetch_all(query)
        }

    def count_blocks(self, session: str) -> int:
        """Return the number of blocks that are not deleted."""
        query = select(func.count()).select_from(blocks).where(*_live_block_filters(session))
        return int(self._connection.execute(query).scalar_one())

    def next_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        """Return id and position of the next block; of the first one for ""."""
        query = select(blocks.c.id, blocks.c.position).where(*_live_block_filters(session, zone))
        query = query.where(blocks.c.position > position).order_by(blocks.c.position)
        row = self._fetch_one(query.limit(1))
        return None if row is None else (row.id, row.position)

    def previous_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        """Return id and position of the previous block; of the last one for ""."""
        query = select(blocks.c.id, blocks.c.position).where(*_live_block_filters(session, zone))
        if position:
            query = query.where(blocks.c.position < position)
        row = self._fetch_one(query.order_by(blocks.c.position.desc()).limit(1))
        return None if row is None else (row.id, row.position)

    def list_positions(self, session: str, zone: Zone) -> list[tuple[str, str]]:
        """Return ids and positions of a zone, in order."""
        query = select(blocks.c.id, blocks.c.position).where(*_live_block_filters(session, zone))
        return [(row.id, row.position) for row in self._fetch_all(_order_by_position(query))]

    def templates(self) -> list[Template]:
        """Return all templates, sorted by name."""
        records = [to_template(row) for row in self._fetch_all(select(templates))]
        return sorted(records, key=lambda template: (template.name, template.id))

    def template(self, identity: str) -> Template | None:
        """Return the template with this id."""
        row = self._fetch_one(select(templates).where(templates.c.id == identity))
        return None if row is None else to_template(row)

    def find_template_by_name(self, name: str) -> Template | None:
        """Return the template with this name."""
        row = self._fetch_one(select(templates).where(templates.c.name == name))
        return None if row is None else to_template(row)

    def template_contents(self, identity: str) -> list[BlockContent]:
        """Return the contents of a template's blocks, in order."""
        query = select(template_blocks).where(template_blocks.c.template_id == identity)
        rows = self._fetch_all(query.order_by(template_blocks.c.ordinal))
        return [to_content(row) for row in rows]

    def snapshots(self, session: str) -> list[SessionSnapshot]:
        """Return the snapshots of a session, newest first."""
        query = select(snapshots).where(snapshots.c.session_id == session)
        rows = self._fetch_all(query.order_by(snapshots.c.revision.desc(), snapshots.c.id))
        return [to_snapshot(row) for row in rows]

    def snapshot(self, session: str, identity: str) -> SessionSnapshot | None:
        """Return a snapshot of a session."""
        row = self._fetch_one(
            select(snapshots).where(snapshots.c.id == identity, snapshots.c.session_id == session)
        )
        return None if row is None else to_snapshot(row)

    def snapshot_blocks(self, identity: str) -> list[Block]:
        """Return the blocks of a snapshot, in order."""
        query = (
            select(snapshot_blocks, snapshots.c.session_id)
            .join(snapshots)
            .where(snapshot_blocks.c.snapshot_id == identity)
            .order_by(snapshot_blocks.c.zone, snapshot_blocks.c.position)
        )
        return [
            Block(
                id=row.id,
                session=row.session_id,
                position=row.position,
                content=to_content(row),
                version=row.version,
                created=row.created_at,
                updated=row.updated_at,
            )
            for row in self._fetch_all(query)
        ]

    def events(self, after: int, limit: int, session: str | None = None) -> list[Event]:
        """Return the events after a number, in order."""
        query = select(events).where(events.c.seq > after)
        if session is not None:
            query = query.where(events.c.session_id == session)
        return [to_event(row) for row in self._fetch_all(query.order_by(events.c.seq).limit(limit))]

    def event_range(self) -> tuple[int, int]:
        """Return the numbers of the first and last stored event, or zeros."""
        first, last = self._connection.execute(
            select(func.min(events.c.seq), func.max(events.c.seq))
        ).one()
        return int(first or 0), int(last or 0)

    def _fetch_one(self, statement: Select[tuple[object, ...]]) -> Row | None:
        return self._connection.execute(statement).first()

    def _fetch_all(self, statement: Select[tuple[object, ...]]) -> list[Row]:
        return list(self._connection.execute(statement))


def _live_block_filters(session: str, zone: Zone | None = None) -> list[ColumnElement[bool]]:
    filters: list[ColumnElement[bool]] = [
        blocks.c.session_id == session,
        blocks.c.deleted.is_(None),
    ]
    if zone is not None:
        filters.append(blocks.c.zone == zone.value)
    return filters


def _order_by_position(statement: Select[tuple[object, ...]]) -> Select[tuple[object, ...]]:
    return statement.order_by(blocks.c.zone, blocks.c.position)
