"""The workspace in SQL. `storage.ports` documents the methods."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import bindparam, delete, func, insert, literal, select, update
from sqlalchemy.exc import IntegrityError

from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.storage.records import Zone, ZoneSize
from skillhall._internal.storage.sql.audit_rows import add_audit_row
from skillhall._internal.storage.sql.events.event_rows import add_events, read_event_range
from skillhall._internal.storage.sql.rows import (
    select_fields,
    to_block,
    to_block_row,
    to_budgets_row,
    to_content,
    to_content_row,
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
from skillhall.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Select, Table

    from skillhall._internal.storage.ports import WorkspaceReader, WorkspaceWriter
    from skillhall._internal.storage.records import (
        Block,
        BlockContent,
        Event,
        Session,
        SessionSnapshot,
        Template,
    )
    from skillhall._internal.storage.sql.engine import Database
    from skillhall._internal.storage.sql.rows import Values

_T = TypeVar("_T")

# Actions in the audit log by kind of event. Blocks change too often, and have their own events.
_AUDITED_EVENTS = {
    "session-created": "session.create",
    "session-edited": "session.edit",
    "session-deleted": "session.delete",
    "snapshot-saved": "snapshot.save",
    "snapshot-restored": "snapshot.restore",
    "snapshot-deleted": "snapshot.delete",
    "template-saved": "template.save",
    "template-edited": "template.edit",
    "template-deleted": "template.delete",
    "template-applied": "template.apply",
}
_TEMPORARY_PREFIX = "~"  # sorts after all positions of blocks
# Columns that a block and its copy in a snapshot share.
_COPIED_COLUMNS = tuple(
    column.key
    for column in snapshot_blocks.columns
    if column.key not in ("snapshot_id", "version", "updated")
)


class SqlWorkspaceStore:
    """Workspace in a database."""

    def __init__(self, database: Database, actor: Actor) -> None:
        self._database = database
        self._actor = actor

    def acting_as(self, actor: Actor) -> SqlWorkspaceStore:
        """Return the same store for changes by an actor, which the audit log records."""
        return SqlWorkspaceStore(self._database, actor)

    def read(self, work: Callable[[WorkspaceReader], _T]) -> _T:
        """Run a read transaction. Raises: DatabaseUnavailable."""
        return self._database.read(lambda connection: work(_Reader(connection)))

    def write(self, work: Callable[[WorkspaceWriter], _T]) -> _T:
        """Run a write transaction.

        Raises: DatabaseUnavailable, DatabaseFull, and errors from `work`.
        """
        return self._database.write(lambda connection: work(_Writer(connection, self._actor)))


class _Reader:
    """Queries in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def session(self, identity: str) -> Session | None:
        query = select_fields(sessions).where(sessions.c.id == identity)
        return self._find_one(to_session, query)

    def sessions(self, after: str, limit: int) -> list[Session]:
        query = select_fields(sessions).where(sessions.c.id > after)
        return self._find_all(to_session, query.order_by(sessions.c.id).limit(limit))

    def block(self, session: str, identity: str) -> Block | None:
        conditions = (blocks.c.id == identity, blocks.c.session == session)
        return self._find_one(to_block, select_fields(blocks).where(*conditions))

    def blocks(
        self, session: str, zone: Zone | None = None, kind: str | None = None
    ) -> list[Block]:
        query = select_fields(blocks).where(*_live_block_filters(session, zone))
        if kind is not None:
            query = query.where(blocks.c.type == kind)
        return self._find_all(to_block, query.order_by(blocks.c.zone, blocks.c.position))

    def skill_blocks(self, session: str, name: str) -> list[Block]:
        filters = (*_live_block_filters(session), blocks.c.skill_name == name)
        # Sorted in Python: with ORDER BY, SQLite would scan every block of the session.
        found = self._find_all(to_block, select_fields(blocks).where(*filters))
        return sorted(found, key=lambda block: (block.zone, block.position))

    def deleted_blocks(self, session: str) -> list[Block]:
        filters = (blocks.c.session == session, blocks.c.deleted.is_not(None))
        query = select_fields(blocks).where(*filters)
        return self._find_all(to_block, query.order_by(blocks.c.deleted.desc(), blocks.c.id))

    def zone_sizes(self, session: str) -> dict[Zone, ZoneSize]:
        columns = (func.count(), func.sum(blocks.c.tokens), func.sum(blocks.c.bytes))
        query = select(blocks.c.zone, *columns).where(*_live_block_filters(session))
        # PostgreSQL's SUM returns a Decimal.
        rows = self._connection.execute(query.group_by(blocks.c.zone))
        return {Zone(row[0]): ZoneSize(row[1], int(row[2]), int(row[3])) for row in rows}

    def count_blocks(self, session: str) -> int:
        query = select(func.count()).select_from(blocks).where(*_live_block_filters(session))
        return int(self._connection.execute(query).scalar_one())

    def next_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        query = _select_positions(session, zone).where(blocks.c.position > position)
        return self._find_one(_to_position, query.order_by(blocks.c.position).limit(1))

    def previous_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        query = _select_positions(session, zone)
        if position:
            query = query.where(blocks.c.position < position)
        return self._find_one(_to_position, query.order_by(blocks.c.position.desc()).limit(1))

    def list_positions(self, session: str, zone: Zone) -> list[tuple[str, str]]:
        query = _select_positions(session, zone).order_by(blocks.c.position)
        return self._find_all(_to_position, query)

    def templates(self) -> list[Template]:
        records = self._find_all(to_template, select_fields(templates))
        return sorted(records, key=lambda template: (template.name, template.id))

    def template(self, identity: str) -> Template | None:
        query = select_fields(templates).where(templates.c.id == identity)
        return self._find_one(to_template, query)

    def find_template_by_name(self, name: str) -> Template | None:
        query = select_fields(templates).where(templates.c.name == name)
        return self._find_one(to_template, query)

    def template_contents(self, identity: str) -> list[BlockContent]:
        query = select_fields(template_blocks).where(template_blocks.c.template_id == identity)
        return self._find_all(to_content, query.order_by(template_blocks.c.ordinal))

    def snapshots(self, session: str) -> list[SessionSnapshot]:
        query = select_fields(snapshots).where(snapshots.c.session == session)
        order = (snapshots.c.revision.desc(), snapshots.c.id)
        return self._find_all(to_snapshot, query.order_by(*order))

    def snapshot(self, session: str, identity: str) -> SessionSnapshot | None:
        conditions = (snapshots.c.id == identity, snapshots.c.session == session)
        return self._find_one(to_snapshot, select_fields(snapshots).where(*conditions))

    def snapshot_blocks(self, identity: str) -> list[Block]:
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
        query = select_fields(events).where(events.c.seq > after)
        if session is not None:
            query = query.where(events.c.session == session)
        return self._find_all(to_event, query.order_by(events.c.seq).limit(limit))

    def event_range(self) -> tuple[int, int]:
        return read_event_range(self._connection)

    def _find_one(self, convert: Callable[[Values], _T], query: Select[Any]) -> _T | None:
        return next(iter(self._find_all(convert, query)), None)

    def _find_all(self, convert: Callable[[Values], _T], query: Select[Any]) -> list[_T]:
        result = self._connection.execute(query)
        keys = [*result.keys()]
        return [convert(dict(zip(keys, row, strict=True))) for row in result]


class _Writer(_Reader):
    """Changes in one transaction."""

    def __init__(self, connection: Connection, actor: Actor) -> None:
        super().__init__(connection)
        self._actor = actor

    def lock_session(self, identity: str) -> Session | None:
        query = select_fields(sessions).where(sessions.c.id == identity)
        return self._find_one(to_session, query.with_for_update())

    def template(self, identity: str) -> Template | None:
        query = select_fields(templates).where(templates.c.id == identity)
        return self._find_one(to_template, query.with_for_update())

    def add_session(self, session: Session) -> None:
        self._connection.execute(insert(sessions), to_budgets_row(session))

    def save_session(self, session: Session) -> None:
        self._update(sessions, to_budgets_row(session))

    def delete_session(self, identity: str) -> None:
        self._connection.execute(delete(sessions).where(sessions.c.id == identity))

    def add_blocks(self, blocks_: Iterable[Block]) -> None:
        rows = [to_block_row(block) for block in blocks_]
        if rows:
            self._connection.execute(insert(blocks), rows)

    def save_block(self, block: Block) -> None:
        self._update(blocks, to_block_row(block))

    def set_positions(self, session: str, positions: Sequence[tuple[str, str]]) -> None:
        statement = (
            update(blocks)
            .where(blocks.c.session == session, blocks.c.id == bindparam("of"))
            .values(position=bindparam("key"))
        )
        # Positions are unique, so the blocks first get temporary ones.
        temporary = [(identity, f"{_TEMPORARY_PREFIX}{identity}") for identity, _ in positions]
        for pairs in (temporary, positions):
            self._connection.execute(statement, [{"of": of, "key": key} for of, key in pairs])

    def delete_blocks(self, session: str) -> None:
        self._connection.execute(delete(blocks).where(blocks.c.session == session))

    def prune_deleted_blocks(self, session: str, keep: int) -> None:
        conditions = (blocks.c.session == session, blocks.c.deleted.is_not(None))
        last = select(blocks.c.id).where(*conditions).order_by(blocks.c.deleted.desc()).limit(keep)
        self._connection.execute(delete(blocks).where(*conditions, blocks.c.id.not_in(last)))

    def add_template(self, template: Template, contents: Sequence[BlockContent]) -> None:
        with _reject_taken_name(template):
            self._connection.execute(insert(templates), to_budgets_row(template))
        self._add_contents(template.id, contents)

    def save_template(self, template: Template, contents: Sequence[BlockContent] | None) -> None:
        with _reject_taken_name(template):
            self._update(templates, to_budgets_row(template))
        if contents is not None:
            condition = template_blocks.c.template_id == template.id
            self._connection.execute(delete(template_blocks).where(condition))
            self._add_contents(template.id, contents)

    def delete_template(self, identity: str) -> None:
        self._connection.execute(delete(templates).where(templates.c.id == identity))

    def add_snapshot(self, snapshot: SessionSnapshot) -> None:
        self._connection.execute(insert(snapshots), to_budgets_row(snapshot))
        keys = [*_COPIED_COLUMNS, "version", "updated"]
        query = select(literal(snapshot.id), *(blocks.c[key] for key in keys)).where(
            blocks.c.session == snapshot.session, blocks.c.deleted.is_(None)
        )
        columns = [snapshot_blocks.c[key] for key in ("snapshot_id", *keys)]
        self._connection.execute(insert(snapshot_blocks).from_select(columns, query))

    def restore_blocks(self, snapshot: SessionSnapshot, version: int, at: str) -> None:
        values = {"session": snapshot.session, "version": version, "updated": at}
        query = select(
            *map(literal, values.values()), *(snapshot_blocks.c[key] for key in _COPIED_COLUMNS)
        ).where(snapshot_blocks.c.snapshot_id == snapshot.id)
        columns = [blocks.c[key] for key in (*values, *_COPIED_COLUMNS)]
        self._connection.execute(insert(blocks).from_select(columns, query))

    def delete_snapshot(self, identity: str) -> None:
        self._connection.execute(delete(snapshots).where(snapshots.c.id == identity))

    def prune_automatic_snapshots(self, session: str, keep: int, keep_id: str) -> None:
        conditions = (
            snapshots.c.session == session,
            snapshots.c.automatic == 1,
            snapshots.c.id != keep_id,
        )
        last = select(snapshots.c.id).where(*conditions).order_by(snapshots.c.revision.desc())
        self._connection.execute(
            delete(snapshots).where(*conditions, snapshots.c.id.not_in(last.limit(keep)))
        )

    def add_audit_row(self, action: str, subject: str, at: str, **detail: object) -> None:
        add_audit_row(self._connection, self._actor, action, subject, at=at, detail=detail)

    def add_events(self, *events_: Event) -> int:
        for event in events_:
            if event.kind in _AUDITED_EVENTS:
                is_part = event.session and event.session != event.subject
                detail = {"session": event.session} if is_part else {}
                self.add_audit_row(_AUDITED_EVENTS[event.kind], event.subject, event.at, **detail)
        return add_events(self._connection, *events_)

    def _update(self, table: Table, row: dict[str, Any]) -> None:
        # Without the id: when it is set, SQLite checks every row that refers to it.
        statement = update(table).where(table.c.id == row.pop("id"))
        self._connection.execute(statement, row)

    def _add_contents(self, template: str, contents: Sequence[BlockContent]) -> None:
        rows = [
            {"template_id": template, "ordinal": number, **to_content_row(content)}
            for number, content in enumerate(contents)
        ]
        if rows:
            self._connection.execute(insert(template_blocks), rows)


@contextmanager
def _reject_taken_name(template: Template) -> Iterator[None]:
    try:
        yield
    except IntegrityError:
        raise Conflict(f"a template named {template.name!r}") from None


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


def _to_position(row: Values) -> tuple[str, str]:
    return row["id"], row["position"]
