"""Storage interface of the workspace.

It is implemented with SQL and, for tests, in memory. One contract suite tests both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.records import (
        Block,
        BlockContent,
        Event,
        Session,
        SessionSnapshot,
        Template,
        Zone,
        ZoneSize,
    )

_T = TypeVar("_T")


class WorkspaceReader(Protocol):
    """Queries on a workspace that all see the same state.

    A query for a single record returns None if there is none.
    """

    def session(self, identity: str) -> Session | None:
        """Return the session with this id."""

    def sessions(self, after: str, limit: int) -> Sequence[Session]:
        """Return up to `limit` sessions after the id `after`, sorted by id."""

    def block(self, session: str, identity: str) -> Block | None:
        """Return a block of a session, deleted or not."""

    def blocks(
        self, session: str, zone: Zone | None = None, kind: str | None = None
    ) -> Sequence[Block]:
        """Return the blocks of a session that are not deleted, in order."""

    def skill_blocks(self, session: str, name: str) -> Sequence[Block]:
        """Return the blocks of the skill `name` that are not deleted, in order."""

    def deleted_blocks(self, session: str) -> Sequence[Block]:
        """Return the blocks that can be restored, last deleted first."""

    def zone_sizes(self, session: str) -> dict[Zone, ZoneSize]:
        """Return the size of each zone that is not empty."""

    def count_blocks(self, session: str) -> int:
        """Return the number of blocks that are not deleted."""

    def next_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        """Return the id and position of the block after `position`; "" is the start."""

    def previous_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        """Return the id and position of the block before `position`; "" is the end."""

    def list_positions(self, session: str, zone: Zone) -> Sequence[tuple[str, str]]:
        """Return the ids and positions of the blocks in a zone, in order."""

    def templates(self) -> Sequence[Template]:
        """Return all templates, sorted by name."""

    def template(self, identity: str) -> Template | None:
        """Return the template with this id."""

    def find_template_by_name(self, name: str) -> Template | None:
        """Return the template with this name."""

    def template_contents(self, identity: str) -> Sequence[BlockContent]:
        """Return the contents of a template's blocks, in order."""

    def snapshots(self, session: str) -> Sequence[SessionSnapshot]:
        """Return the snapshots of a session, newest first."""

    def snapshot(self, session: str, identity: str) -> SessionSnapshot | None:
        """Return a snapshot of a session."""

    def snapshot_blocks(self, identity: str) -> Sequence[Block]:
        """Return the blocks of a snapshot, in order."""

    def events(self, after: int, limit: int, session: str | None = None) -> Sequence[Event]:
        """Return up to `limit` events after the sequence number `after`, in order."""

    def event_range(self) -> tuple[int, int]:
        """Return the first and last stored sequence number; zeros if there are no events."""


class WorkspaceWriter(WorkspaceReader, Protocol):
    """Changes to a workspace in one transaction."""

    def lock_session(self, identity: str) -> Session | None:
        """Return a session and lock it until the transaction ends."""

    def template(self, identity: str) -> Template | None:
        """Return a template and lock it until the transaction ends."""

    def add_session(self, session: Session) -> None:
        """Insert a session."""

    def save_session(self, session: Session) -> None:
        """Update a session."""

    def delete_session(self, identity: str) -> None:
        """Delete a session with everything that belongs to it."""

    def add_blocks(self, blocks: Iterable[Block]) -> None:
        """Insert blocks."""

    def save_block(self, block: Block) -> None:
        """Update a block."""

    def set_positions(self, session: str, positions: Sequence[tuple[str, str]]) -> None:
        """Set the positions of blocks in one zone; takes pairs of id and position."""

    def delete_blocks(self, session: str) -> None:
        """Delete all blocks of a session permanently."""

    def prune_deleted_blocks(self, session: str, keep: int) -> None:
        """Permanently delete all but the last `keep` deleted blocks."""

    def add_template(self, template: Template, contents: Sequence[BlockContent]) -> None:
        """Insert a template. Raises: Conflict if its name is taken."""

    def save_template(self, template: Template, contents: Sequence[BlockContent] | None) -> None:
        """Update a template; if `contents` is None, its blocks stay. Raises: Conflict."""

    def delete_template(self, identity: str) -> None:
        """Delete a template."""

    def add_snapshot(self, snapshot: SessionSnapshot) -> None:
        """Insert a snapshot of the session's current blocks."""

    def restore_blocks(self, snapshot: SessionSnapshot, version: int, at: str) -> None:
        """Copy the blocks of a snapshot into its session, which must be empty."""

    def delete_snapshot(self, identity: str) -> None:
        """Delete a snapshot."""

    def prune_automatic_snapshots(self, session: str, keep: int, keep_id: str) -> None:
        """Delete automatic snapshots except the last `keep` and the one with `keep_id`."""

    def add_audit_row(self, action: str, subject: str, at: str, **detail: object) -> None:
        """Record a change in the audit log. Call it before `add_events`."""

    def add_events(self, *events: Event) -> int:
        """Insert events, which are delivered after the commit.

        The audit log gets a row for each event that creates, edits, deletes, restores or applies
        something other than a block. Returns a unique number.
        """


class WorkspaceStore(Protocol):
    """Storage of a workspace. `write` may call `work` more than once."""

    def acting_as(self, actor: Actor) -> WorkspaceStore:
        """Return the same store for changes by an actor, which the audit log records."""

    def read(self, work: Callable[[WorkspaceReader], _T]) -> _T:
        """Run a read transaction. Raises: DatabaseUnavailable."""

    def write(self, work: Callable[[WorkspaceWriter], _T]) -> _T:
        """Run a write transaction, all or nothing.

        Raises: DatabaseUnavailable, DatabaseFull, and errors from `work`.
        """
