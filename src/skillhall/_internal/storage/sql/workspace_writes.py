"""Changes of the workspace as SQL statements, and the store that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import bindparam, delete, insert, literal, select, text, update
from sqlalchemy.exc import IntegrityError

from skillhall._internal.storage.sql.rows import (
    to_block_row,
    to_content_row,
    to_event_row,
    to_session,
    to_session_row,
    to_snapshot_row,
    to_template,
    to_template_row,
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
    from collections.abc import Callable, Iterable, Sequence

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
    column.name
    for column in snapshot_blocks.columns
    if column.name not in ("snapshot_id", "version", "updated_at")
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
        row = self._fetch_one(select(sessions).where(sessions.c.id == identity).with_for_update())
        return None if row is None else to_session(row)

    def template(self, identity: str) -> Template | None:
        """Return a template and lock it until the transaction ends."""
        row = self._fetch_one(select(templates).where(templates.c.id == identity).with_for_update())
        return None if row is None else to_template(row)

    def add_session(self, session: Session) -> None:
        """Insert a session."""
        self._connection.execute(insert(sessions), to_session_row(session))

    def save_session(self, session: Session) -> None:
        """Update a session."""
        statement = update(sessions).where(sessions.c.id == session.id)
        self._connection.execute(statement, _without_id(to_session_row(session)))

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
        statement = update(blocks).where(blocks.c.id == block.id)
        self._connection.execute(statement, _without_id(to_block_row(block)))

    def set_positions(self, session: str, positions: Sequence[tuple[str, str]]) -> None:
        """Set the positions of blocks of one zone, by id."""
        statement = (
            update(blocks)
            .where(blocks.c.session_id == session, blocks.c.id == bindparam("of"))
            .values(position=bindparam("key"))
        )
        # Positions are unique, so the blocks first get temporary ones.
        temporary = [
            {"of": identity, "key": f"{_TEMPORARY_PREFIX}{identity}"} for identity, _ in positions
        ]
        self._connection.execute(statement, temporary)
        self._connection.execute(
            statement, [{"of": identity, "key": key} for identity, key in positions]
        )

    def delete_blocks(self, session: str) -> None:
        """Delete all blocks of a session permanently."""
        self._connection.execute(delete(blocks).where(blocks.c.session_id == session))

    def prune_deleted_blocks(self, session: str, keep: int) -> None:
        """Permanently delete all but the last `keep` deleted blocks."""
        conditions = (blocks.c.session_id == session, blocks.c.deleted.is_not(None))
        last = select(blocks.c.id).where(*conditions).order_by(blocks.c.deleted.desc()).limit(keep)
        self._connection.execute(delete(blocks).where(*conditions, blocks.c.id.not_in(last)))

    def add_template(self, template: Template, contents: Sequence[BlockContent]) -> None:
        """Insert a template. Raises: Conflict if its name is taken."""
        try:
            self._connection.execute(insert(templates), to_template_row(template))
        except IntegrityError:
            raise Conflict(f"a template named {template.name!r}") from None
        self._add_contents(template.id, contents)

    def save_template(self, template: Template, contents: Sequence[BlockContent] | None) -> None:
        """Update a template. Raises: Conflict if its name is taken."""
        statement = update(templates).where(templates.c.id == template.id)
        try:
            self._connection.execute(statement, _without_id(to_template_row(template)))
        except IntegrityError:
            raise Conflict(f"a template named {template.name!r}") from None
        if contents is not None:
            condition = template_blocks.c.template_id == template.id
            self._connection.execute(delete(template_blocks).where(condition))
            self._add_contents(template.id, contents)

    def delete_template(self, identity: str) -> None:
        """Delete a template."""
        self._connection.execute(delete(templates).where(templates.c.id == identity))

    def add_snapshot(self, snapshot: SessionSnapshot) -> None:
        """Insert a snapshot of the session's current blocks."""
        self._connection.execute(insert(snapshots), to_snapshot_row(snapshot))
        names = [*_COPIED_COLUMNS, "version", "updated_at"]
        query = select(literal(snapshot.id), *(blocks.c[name] for name in names)).where(
            blocks.c.session_id == snapshot.session, blocks.c.deleted.is_(None)
        )
        self._connection.execute(
            insert(snapshot_blocks).from_select(["snapshot_id", *names], query)
        )

    def restore_blocks(self, snapshot: SessionSnapshot, version: int, at: str) -> None:
        """Copy the blocks of a snapshot into its session, which must be empty."""
        query = select(
            literal(snapshot.session),
            literal(version),
            literal(at),
            *(snapshot_blocks.c[name] for name in _COPIED_COLUMNS),
        ).where(snapshot_blocks.c.snapshot_id == snapshot.id)
        names = ["session_id", "version", "updated_at", *_COPIED_COLUMNS]
        self._connection.execute(insert(blocks).from_select(names, query))

    def delete_snapshot(self, identity: str) -> None:
        """Delete a snapshot."""
        self._connection.execute(delete(snapshots).where(snapshots.c.id == identity))

    def prune_automatic_snapshots(self, session: str, keep: int, keep_id: str) -> None:
        """Delete automatic snapshots except the last `keep` and the one with `keep_id`."""
        conditions = (
            snapshots.c.session_id == session,
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

    def _add_contents(self, template: str, contents: Sequence[BlockContent]) -> None:
        rows = [
            {"template_id": template, "ordinal": number, **to_content_row(content)}
            for number, content in enumerate(contents)
        ]
        if rows:
            self._connection.execute(insert(template_blocks), rows)


def _without_id(row: dict[str, Any]) -> dict[str, Any]:
    # When the id is set, SQLite checks every row that refers to it, even if it is unchanged.
    return {name: value for name, value in row.items() if name != "id"}
