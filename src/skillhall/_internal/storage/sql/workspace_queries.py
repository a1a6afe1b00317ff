"""The workspace's questions as statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from skillhall._internal.storage.records import Block, Zone, ZoneSize
from skillhall._internal.storage.sql.rows import (
    block_of,
    content_of,
    event_of,
    session_of,
    snapshot_of,
    template_of,
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

    from skillhall._internal.storage.records import Content, Event, Session, Snapshot, Template
    from skillhall._internal.storage.sql.rows import Row


class SqlReading:
    """Answers out of one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def session(self, identity: str) -> Session | None:
        """The session with that id."""
        row = self._one(select(sessions).where(sessions.c.id == identity))
        return None if row is None else session_of(row)

    def sessions(self, after: str, limit: int) -> list[Session]:
        """Sessions in order of their ids."""
        asked = select(sessions).where(sessions.c.id > after).order_by(sessions.c.id).limit(limit)
        return [session_of(row) for row in self._all(asked)]

    def block(self, session: str, identity: str) -> Block | None:
        """The block of that session, deleted or not."""
        row = self._one(
            select(blocks).where(blocks.c.id == identity, blocks.c.session_id == session)
        )
        return None if row is None else block_of(row)

    def blocks(
        self, session: str, zone: Zone | None = None, kind: str | None = None
    ) -> list[Block]:
        """The blocks of a session that are not deleted, in order."""
        asked = select(blocks).where(*_live(session, zone))
        if kind is not None:
            asked = asked.where(blocks.c.type == kind)
        return [block_of(row) for row in self._all(_in_order(asked))]

    def skill_blocks(self, session: str, name: str) -> list[Block]:
        """The blocks of that skill which are not deleted, in order."""
        asked = select(blocks).where(*_live(session), blocks.c.skill_name == name)
        # Ordered here: for the sake of the order, SQLite would read every block of the session.
        found = [block_of(row) for row in self._all(asked)]
        return sorted(found, key=lambda block: (block.zone, block.position))

    def deleted_blocks(self, session: str) -> list[Block]:
        """The blocks that can be brought back, the last deleted first."""
        asked = select(blocks).where(blocks.c.session_id == session, blocks.c.deleted.is_not(None))
        found = self._all(asked.order_by(blocks.c.deleted.desc(), blocks.c.id))
        return [block_of(row) for row in found]

    def sizes(self, session: str) -> dict[Zone, ZoneSize]:
        """How much lies in each zone that is not empty."""
        asked = (
            select(
                blocks.c.zone,
                func.count().label("number"),
                func.sum(blocks.c.tokens).label("tokens"),
                func.sum(blocks.c.bytes).label("size"),
            )
            .where(*_live(session))
            .group_by(blocks.c.zone)
        )
        # PostgreSQL sums into a type of any length.
        return {
            Zone(row.zone): ZoneSize(row.number, int(row.tokens), int(row.size))
            for row in self._all(asked)
        }

    def count(self, session: str) -> int:
        """How many blocks of a session are not deleted."""
        asked = select(func.count()).select_from(blocks).where(*_live(session))
        return int(self._connection.execute(asked).scalar_one())

    def following(self, session: str, zone: Zone, key: str) -> tuple[str, str] | None:
        """The id and position of the block after a position, or of the first one."""
        asked = select(blocks.c.id, blocks.c.position).where(*_live(session, zone))
        asked = asked.where(blocks.c.position > key).order_by(blocks.c.position)
        row = self._one(asked.limit(1))
        return None if row is None else (row.id, row.position)

    def preceding(self, session: str, zone: Zone, key: str) -> tuple[str, str] | None:
        """The id and position of the block before a position, or of the last one."""
        asked = select(blocks.c.id, blocks.c.position).where(*_live(session, zone))
        if key:
            asked = asked.where(blocks.c.position < key)
        row = self._one(asked.order_by(blocks.c.position.desc()).limit(1))
        return None if row is None else (row.id, row.position)

    def keys(self, session: str, zone: Zone) -> list[tuple[str, str]]:
        """The ids and positions of a zone, in order."""
        asked = select(blocks.c.id, blocks.c.position).where(*_live(session, zone))
        return [(row.id, row.position) for row in self._all(_in_order(asked))]

    def templates(self) -> list[Template]:
        """All templates, by name."""
        found = [template_of(row) for row in self._all(select(templates))]
        return sorted(found, key=lambda one: (one.name, one.id))

    def template(self, identity: str) -> Template | None:
        """The template with that id."""
        row = self._one(select(templates).where(templates.c.id == identity))
        return None if row is None else template_of(row)

    def template_named(self, name: str) -> Template | None:
        """The template of that name."""
        row = self._one(select(templates).where(templates.c.name == name))
        return None if row is None else template_of(row)

    def template_contents(self, identity: str) -> list[Content]:
        """What its blocks say, in order."""
        asked = select(template_blocks).where(template_blocks.c.template_id == identity)
        return [content_of(row) for row in self._all(asked.order_by(template_blocks.c.ordinal))]

    def snapshots(self, session: str) -> list[Snapshot]:
        """The snapshots of a session, the newest first."""
        asked = select(snapshots).where(snapshots.c.session_id == session)
        found = self._all(asked.order_by(snapshots.c.revision.desc(), snapshots.c.id))
        return [snapshot_of(row) for row in found]

    def snapshot(self, session: str, identity: str) -> Snapshot | None:
        """The snapshot of that session."""
        row = self._one(
            select(snapshots).where(snapshots.c.id == identity, snapshots.c.session_id == session)
        )
        return None if row is None else snapshot_of(row)

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
                content=content_of(row),
                version=row.version,
                created=row.created_at,
                updated=row.updated_at,
            )
            for row in self._all(asked)
        ]

    def events(self, after: int, limit: int, session: str | None = None) -> list[Event]:
        """The events that follow, in order."""
        asked = select(events).where(events.c.seq > after)
        if session is not None:
            asked = asked.where(events.c.session_id == session)
        return [event_of(row) for row in self._all(asked.order_by(events.c.seq).limit(limit))]

    def event_range(self) -> tuple[int, int]:
        """The numbers of the first and the last event that are kept."""
        first, last = self._connection.execute(
            select(func.min(events.c.seq), func.max(events.c.seq))
        ).one()
        return int(first or 0), int(last or 0)

    def _one(self, asked: Select[tuple[object, ...]]) -> Row | None:
        return self._connection.execute(asked).first()

    def _all(self, asked: Select[tuple[object, ...]]) -> list[Row]:
        return list(self._connection.execute(asked))


def _live(session: str, zone: Zone | None = None) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [
        blocks.c.session_id == session,
        blocks.c.deleted.is_(None),
    ]
    if zone is not None:
        found.append(blocks.c.zone == zone.value)
    return found


def _in_order(asked: Select[tuple[object, ...]]) -> Select[tuple[object, ...]]:
    return asked.order_by(blocks.c.zone, blocks.c.position)
