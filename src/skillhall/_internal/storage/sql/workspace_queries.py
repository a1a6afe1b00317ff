"""The workspace's questions as statements."""

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
    """Answers out of one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def session(self, identity: str) -> Session | None:
        """The session with that id."""
        row = self._fetch_one(select(sessions).where(sessions.c.id == identity))
        return None if row is None else to_session(row)

    def sessions(self, after: str, limit: int) -> list[Session]:
        """Sessions in order of their ids."""
        asked = select(sessions).where(sessions.c.id > after).order_by(sessions.c.id).limit(limit)
        return [to_session(row) for row in self._fetch_all(asked)]

    def block(self, session: str, identity: str) -> Block | None:
        """The block of that session, deleted or not."""
        row = self._fetch_one(
            select(blocks).where(blocks.c.id == identity, blocks.c.session_id == session)
        )
        return None if row is None else to_block(row)

    def blocks(
        self, session: str, zone: Zone | None = None, kind: str | None = None
    ) -> list[Block]:
        """The blocks of a session that are not deleted, in order."""
        asked = select(blocks).where(*_live_block_filters(session, zone))
        if kind is not None:
            asked = asked.where(blocks.c.type == kind)
        return [to_block(row) for row in self._fetch_all(_order_by_position(asked))]

    def skill_blocks(self, session: str, name: str) -> list[Block]:
        """The blocks of that skill which are not deleted, in order."""
        asked = select(blocks).where(*_live_block_filters(session), blocks.c.skill_name == name)
        # Ordered here: for the sake of the order, SQLite would read every block of the session.
        found = [to_block(row) for row in self._fetch_all(asked)]
        return sorted(found, key=lambda block: (block.zone, block.position))

    def deleted_blocks(self, session: str) -> list[Block]:
        """The blocks that can be brought back, the last deleted first."""
        asked = select(blocks).where(blocks.c.session_id == session, blocks.c.deleted.is_not(None))
        found = self._fetch_all(asked.order_by(blocks.c.deleted.desc(), blocks.c.id))
        return [to_block(row) for row in found]

    def zone_sizes(self, session: str) -> dict[Zone, ZoneSize]:
        """How much lies in each zone that is not empty."""
        asked = (
            select(
                blocks.c.zone,
                func.count().label("number"),
                func.sum(blocks.c.tokens).label("tokens"),
                func.sum(blocks.c.bytes).label("size"),
            )
            .where(*_live_block_filters(session))
            .group_by(blocks.c.zone)
        )
        # PostgreSQL sums into a type of any length.
        return {
            Zone(row.zone): ZoneSize(row.number, int(row.tokens), int(row.size))
            for row in self._fetch_all(asked)
        }

    def count_blocks(self, session: str) -> int:
        """How many blocks of a session are not deleted."""
        asked = select(func.count()).select_from(blocks).where(*_live_block_filters(session))
        return int(self._connection.execute(asked).scalar_one())

    def next_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        """The id and position of the block after a position, or of the first one."""
        asked = select(blocks.c.id, blocks.c.position).where(*_live_block_filters(session, zone))
        asked = asked.where(blocks.c.position > position).order_by(blocks.c.position)
        row = self._fetch_one(asked.limit(1))
        return None if row is None else (row.id, row.position)

    def previous_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        """The id and position of the block before a position, or of the last one."""
        asked = select(blocks.c.id, blocks.c.position).where(*_live_block_filters(session, zone))
        if position:
            asked = asked.where(blocks.c.position < position)
        row = self._fetch_one(asked.order_by(blocks.c.position.desc()).limit(1))
        return None if row is None else (row.id, row.position)

    def list_positions(self, session: str, zone: Zone) -> list[tuple[str, str]]:
        """The ids and positions of a zone, in order."""
        asked = select(blocks.c.id, blocks.c.position).where(*_live_block_filters(session, zone))
        return [(row.id, row.position) for row in self._fetch_all(_order_by_position(asked))]

    def templates(self) -> list[Template]:
        """All templates, by name."""
        found = [to_template(row) for row in self._fetch_all(select(templates))]
        return sorted(found, key=lambda one: (one.name, one.id))

    def template(self, identity: str) -> Template | None:
        """The template with that id."""
        row = self._fetch_one(select(templates).where(templates.c.id == identity))
        return None if row is None else to_template(row)

    def find_template_by_name(self, name: str) -> Template | None:
        """The template of that name."""
        row = self._fetch_one(select(templates).where(templates.c.name == name))
        return None if row is None else to_template(row)

    def template_contents(self, identity: str) -> list[BlockContent]:
        """What its blocks say, in order."""
        asked = select(template_blocks).where(template_blocks.c.template_id == identity)
        return [
            to_content(row) for row in self._fetch_all(asked.order_by(template_blocks.c.ordinal))
        ]

    def snapshots(self, session: str) -> list[SessionSnapshot]:
        """The snapshots of a session, the newest first."""
        asked = select(snapshots).where(snapshots.c.session_id == session)
        found = self._fetch_all(asked.order_by(snapshots.c.revision.desc(), snapshots.c.id))
        return [to_snapshot(row) for row in found]

    def snapshot(self, session: str, identity: str) -> SessionSnapshot | None:
        """The snapshot of that session."""
        row = self._fetch_one(
            select(snapshots).where(snapshots.c.id == identity, snapshots.c.session_id == session)
        )
        return None if row is None else to_snapshot(row)

    def snapshot_blocks(self, identity: str) -> list[Block]:
        """The blocks as they were, in order."""
        asked = (
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
            for row in self._fetch_all(asked)
        ]

    def events(self, after: int, limit: int, session: str | None = None) -> list[Event]:
        """The events that follow, in order."""
        asked = select(events).where(events.c.seq > after)
        if session is not None:
            asked = asked.where(events.c.session_id == session)
        return [to_event(row) for row in self._fetch_all(asked.order_by(events.c.seq).limit(limit))]

    def event_range(self) -> tuple[int, int]:
        """The numbers of the first and the last event that are kept."""
        first, last = self._connection.execute(
            select(func.min(events.c.seq), func.max(events.c.seq))
        ).one()
        return int(first or 0), int(last or 0)

    def _fetch_one(self, statement: Select[tuple[object, ...]]) -> Row | None:
        return self._connection.execute(statement).first()

    def _fetch_all(self, statement: Select[tuple[object, ...]]) -> list[Row]:
        return list(self._connection.execute(statement))


def _live_block_filters(session: str, zone: Zone | None = None) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [
        blocks.c.session_id == session,
        blocks.c.deleted.is_(None),
    ]
    if zone is not None:
        found.append(blocks.c.zone == zone.value)
    return found


def _order_by_position(statement: Select[tuple[object, ...]]) -> Select[tuple[object, ...]]:
    return statement.order_by(blocks.c.zone, blocks.c.position)
