"""Changes of the workspace as SQL statements, and the store that runs them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import bindparam, delete, insert, literal, select, text, update
from sqlalchemy.exc import IntegrityError

from skillhall._internal.storage.sql.rows import (
    select_fields,
    to_block_row,
    to_budgets_row,
    to_content_row,
    to_event_row,
    to_session,
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
from skillhall._internal.storage.sql.workspace_queries import SqlWorkspaceReader
from skillhall.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import Table

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

_T = TypeVar("_T")

NOTIFY_CHANNEL = "skillhall_events"  # for PostgreSQL's NOTIFY
MAX_EVENTS = 100_000
_PRUNE_INTERVAL = 1_000  # events between deletions of old ones
# Serializes event numbers: a reader never sees a number before all lower ones are committed.
_EVENT_LOCK = "SELECT pg_advisory_xact_lock(7223446120932)"
_TEMPORARY_PREFIX = "~"  # sorts after all positions of blocks
# Columns that a block and its copy in a snapshot share.
_COPIED_COLUMNS = tuple(
    column.key
    for column in snapshot_blocks.columns
    if column.key not in ("snapshot_id", "version", "updated")
)


class SqlWorkspaceStore:
    """Workspace in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, work: Callable[[WorkspaceReader], _T]) -> _T:
        """Run a read transaction. Raises: DatabaseUnavailable."""
        return self._database.read(lambda connection: work(SqlWorkspaceReader(connection)))

    def write(self, work: Callable[[WorkspaceWriter], _T]) -> _T:
        """Run a write transaction.

        Raises: DatabaseUnavailable, DatabaseFull, and as `work`.
        """
        return self._database.write(lambda connection: work(SqlWorkspaceWriter(connection)))


class SqlWorkspaceWriter(SqlWorkspaceReader):
    """Writes to the workspace, in one transaction."""

    def lock_session(self, identity: str) -> Session | None:
        """Return a session and lock it until the transaction ends."""
        query = select_fields(sessions).where(sessions.c.id == identity)
        return self._find_one(to_session, query.with_for_update())

    def template(self, identity: str) -> Template | None:
        """Return a template and lock it until the transaction ends."""
        query = select_fields(templates).where(templates.c.id == identity)
        return self._find_one(to_template, query.with_for_update())

    def add_session(self, session: Session) -> None:
        """Insert a session."""
        self._connection.execute(insert(sessions), to_budgets_row(session))

    def save_session(self, session: Session) -> None:
        """Update a session."""
        self._update(sessions, to_budgets_row(session))

    def delete_session(self, identity: str) -> None:
        """Delete a session with everything that belongs to it."""
        self._connection.execute(delete(sessions).where(sessions.c.id == identity))

    def add_blocks(self, blocks_: Iterable[Block]) -> None:
        """Insert blocks."""
        rows = [to_block_row(block) for block in blocks_]
        if rows:
            self._connection.execute(insert(blocks), rows)

    def save_block(self, block: Block) -> None:
        """Update a block."""
        self._update(blocks, to_block_row(block))

    def set_positions(self, session: str, positions: Sequence[tuple[str, str]]) -> None:
        """Set the positions of blocks of one zone, by id."""
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
        """Delete all blocks of a session permanently."""
        self._connection.execute(delete(blocks).where(blocks.c.session == session))

    def prune_deleted_blocks(self, session: str, keep: int) -> None:
        """Permanently delete all but the last `keep` deleted blocks."""
        conditions = (blocks.c.session == session, blocks.c.deleted.is_not(None))
        last = select(blocks.c.id).where(*conditions).order_by(blocks.c.deleted.desc()).limit(keep)
        self._connection.execute(delete(blocks).where(*conditions, blocks.c.id.not_in(last)))

    def add_template(self, template: Template, contents: Sequence[BlockContent]) -> None:
        """Insert a template. Raises: Conflict if its name is taken."""
        with _reject_taken_name(template):
            self._connection.execute(insert(templates), to_budgets_row(template))
        self._add_contents(template.id, contents)

    def save_template(self, template: Template, contents: Sequence[BlockContent] | None) -> None:
        """Update a template. Raises: Conflict if its name is taken."""
        with _reject_taken_name(template):
            self._update(templates, to_budgets_row(template))
        if contents is not None:
            condition = template_blocks.c.template_id == template.id
            self._connection.execute(delete(template_blocks).where(condition))
            self._add_contents(template.id, contents)

    def delete_template(self, identity: str) -> None:
        """Delete a template."""
        self._connection.execute(delete(templates).where(templates.c.id == identity))

    def add_snapshot(self, snapshot: SessionSnapshot) -> None:
        """Insert a snapshot of the session's current blocks."""
        self._connection.execute(insert(snapshots), to_budgets_row(snapshot))
        keys = [*_COPIED_COLUMNS, "version", "updated"]
        query = select(literal(snapshot.id), *(blocks.c[key] for key in keys)).where(
            blocks.c.session == snapshot.session, blocks.c.deleted.is_(None)
        )
        columns = [snapshot_blocks.c[key] for key in ("snapshot_id", *keys)]
        self._connection.execute(insert(snapshot_blocks).from_select(columns, query))

    def restore_blocks(self, snapshot: SessionSnapshot, version: int, at: str) -> None:
        """Copy the blocks of a snapshot into its session, which must be empty."""
        values = {"session": snapshot.session, "version": version, "updated": at}
        query = select(
            *map(literal, values.values()), *(snapshot_blocks.c[key] for key in _COPIED_COLUMNS)
        ).where(snapshot_blocks.c.snapshot_id == snapshot.id)
        columns = [blocks.c[key] for key in (*values, *_COPIED_COLUMNS)]
        self._connection.execute(insert(blocks).from_select(columns, query))

    def delete_snapshot(self, identity: str) -> None:
        """Delete a snapshot."""
        self._connection.execute(delete(snapshots).where(snapshots.c.id == identity))

    def prune_automatic_snapshots(self, session: str, keep: int, keep_id: str) -> None:
        """Delete automatic snapshots except the last `keep` and the one with `keep_id`."""
        conditions = (
            snapshots.c.session == session,
            snapshots.c.automatic == 1,
            snapshots.c.id != keep_id,
        )
        last = select(snapshots.c.id).where(*conditions).order_by(snapshots.c.revision.desc())
        self._connection.execute(
            delete(snapshots).where(*conditions, snapshots.c.id.not_in(last.limit(keep)))
        )

    def add_events(self, *events_: Event) -> int:
        """Insert events; PostgreSQL notifies listeners after the commit."""
        is_postgres = self._connection.dialect.name == "postgresql"
        if is_postgres:
            self._connection.execute(text(_EVENT_LOCK))
        last = 0
        for event in events_:
            result = self._connection.execute(insert(events), to_event_row(event))
            last = int(result.inserted_primary_key[0]) if result.inserted_primary_key else 0
            if last % _PRUNE_INTERVAL == 0:
                old = events.c.seq <= last - MAX_EVENTS
                self._connection.execute(delete(events).where(old))
        if is_postgres:
            parameters = {"channel": NOTIFY_CHANNEL, "seq": str(last)}
            self._connection.execute(text("SELECT pg_notify(:channel, :seq)"), parameters)
        return last

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
