"""Operations on snapshots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import SessionSnapshot
from skillhall._internal.workspace.unit_of_work import get_session, validate_id
from skillhall._internal.workspace.validation import MAX_NAME, validate_name
from skillhall.errors import RecordNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.storage.ports import WorkspaceReader
    from skillhall._internal.storage.records import Block, Session
    from skillhall._internal.workspace.unit_of_work import SessionChange, UnitOfWork

SNAPSHOT_SAVED, SNAPSHOT_RESTORED = "snapshot-saved", "snapshot-restored"
SNAPSHOT_DELETED = "snapshot-deleted"
MAX_AUTOMATIC_SNAPSHOTS = 20  # per session


class RestoreResult(NamedTuple):
    """Result of restoring a snapshot."""

    session: Session
    before: SessionSnapshot  # the session before the restore


class SnapshotDetail(NamedTuple):
    """A snapshot and its blocks."""

    snapshot: SessionSnapshot
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The snapshots of all sessions."""

    unit_of_work: UnitOfWork

    def list(self, session: str) -> list[SessionSnapshot]:
        """Return the snapshots of a session, newest first. Raises: RecordNotFound."""
        return self.unit_of_work.store.read(
            lambda read: [*read.snapshots(get_session(read, session).id)]
        )

    def find(self, session: str, identity: str) -> SnapshotDetail:
        """Return a snapshot with its blocks. Raises: RecordNotFound."""
        return self.unit_of_work.store.read(
            lambda read: SnapshotDetail(
                _get_snapshot(read, session, identity), read.snapshot_blocks(identity)
            )
        )

    def save(self, session: str, name: str) -> SessionSnapshot:
        """Save a snapshot. Raises: RecordNotFound, TextRefused, FieldRefused, TooLarge."""
        name = validate_name("name", name)
        return self.unit_of_work.change_session(
            session, lambda change: _save_snapshot(change, name, automatic=False)
        )

    def restore(self, session: str, identity: str, revision: int | None = None) -> RestoreResult:
        """Restore a snapshot, after saving the current state as an automatic one.

        With `revision`, the session must still have that revision.
        Raises: RecordNotFound, VersionConflict.
        """

        def work(change: SessionChange) -> RestoreResult:
            snapshot = _get_snapshot(change.writer, session, identity)
            change.check_unchanged_since(revision)
            before = save_automatic_snapshot(change, f"before {snapshot.name}", snapshot.id)
            change.writer.delete_blocks(session)
            change.writer.restore_blocks(snapshot, change.revision, change.at)
            change.session = replace(
                change.session, budgets=snapshot.budgets, version=change.revision
            )
            change.add_event(SNAPSHOT_RESTORED, identity)
            return RestoreResult(change.session, before)

        return self.unit_of_work.change_session(session, work)

    def delete(self, session: str, identity: str) -> None:
        """Delete a snapshot. Raises: RecordNotFound."""

        def work(change: SessionChange) -> None:
            _get_snapshot(change.writer, session, identity)
            change.writer.delete_snapshot(identity)
            change.add_event(SNAPSHOT_DELETED, identity)

        self.unit_of_work.change_session(session, work)


def save_automatic_snapshot(change: SessionChange, name: str, keep_id: str = "") -> SessionSnapshot:
    """Save a snapshot before blocks are replaced, and prune automatic snapshots.

    The snapshot `keep_id`, which is about to be restored, is not pruned.
    """
    snapshot = _save_snapshot(change, name[:MAX_NAME], automatic=True)
    change.writer.prune_automatic_snapshots(change.session.id, MAX_AUTOMATIC_SNAPSHOTS, keep_id)
    return snapshot


def _save_snapshot(change: SessionChange, name: str, *, automatic: bool) -> SessionSnapshot:
    snapshot = SessionSnapshot(
        id=change.new_id(),
        session=change.session.id,
        name=name,
        budgets=change.session.budgets,
        revision=change.revision,
        created=change.at,
        automatic=automatic,
    )
    change.writer.add_snapshot(snapshot)
    change.add_event(SNAPSHOT_SAVED, snapshot.id, name=name)
    return snapshot


def _get_snapshot(reader: WorkspaceReader, session: str, identity: str) -> SessionSnapshot:
    snapshot = reader.snapshot(validate_id("session", session), validate_id("snapshot", identity))
    if snapshot is None:
        raise RecordNotFound("snapshot", identity)
    return snapshot
