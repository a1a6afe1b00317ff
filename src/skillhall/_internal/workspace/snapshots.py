"""The verbs on snapshots."""

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

SNAPSHOT_SAVED, SNAPSHOT_RESTORED, SNAPSHOT_DELETED = (
    "snapshot-saved",
    "snapshot-restored",
    "snapshot-deleted",
)
MAX_AUTOMATIC_SNAPSHOTS = 20  # snapshots of a session that we made ourselves


class RestoreResult(NamedTuple):
    """What restoring did."""

    session: Session
    before: SessionSnapshot  # the session as it was


class SnapshotDetail(NamedTuple):
    """A snapshot and its blocks."""

    snapshot: SessionSnapshot
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The snapshots of any session."""

    unit_of_work: UnitOfWork

    def list(self, session: str) -> list[SessionSnapshot]:
        """Those of one session, the newest first. Raises: RecordNotFound."""

        def work(read: WorkspaceReader) -> Sequence[SessionSnapshot]:
            get_session(read, session)
            return read.snapshots(session)

        return [*self.unit_of_work.store.read(work)]

    def find(self, session: str, identity: str) -> SnapshotDetail:
        """One with its blocks. Raises: RecordNotFound."""

        def work(read: WorkspaceReader) -> SnapshotDetail:
            return SnapshotDetail(
                _get_snapshot(read, session, identity), read.snapshot_blocks(identity)
            )

        return self.unit_of_work.store.read(work)

    def save(self, session: str, name: str) -> SessionSnapshot:
        """The session as it is. Raises: RecordNotFound, TextRefused, FieldRefused, TooLarge."""
        checked = validate_name("name", name)
        return self.unit_of_work.change_session(
            session,
            lambda change: _save_snapshot(self.unit_of_work, change, checked, automatic=False),
        )

    def restore(self, session: str, identity: str, revision: int | None = None) -> RestoreResult:
        """The session as it was then; as it is now, it becomes a snapshot too.

        With `revision`, only if nothing in the session was changed since that one.
        Raises: RecordNotFound, VersionConflict.
        """

        def work(change: SessionChange) -> RestoreResult:
            snapshot = _get_snapshot(change.writer, session, identity)
            change.check_unchanged_since(revision)
            before = save_automatic_snapshot(
                self.unit_of_work, change, f"before {snapshot.name}", keep_id=snapshot.id
            )
            change.writer.delete_blocks(session)
            change.writer.restore_blocks(snapshot, change.revision, change.at)
            change.session = replace(
                change.session, budgets=snapshot.budgets, version=change.revision
            )
            change.add_event(SNAPSHOT_RESTORED, identity)
            return RestoreResult(change.session, before)

        return self.unit_of_work.change_session(session, work)

    def delete(self, session: str, identity: str) -> None:
        """Remove a snapshot. Raises: RecordNotFound."""

        def work(change: SessionChange) -> None:
            _get_snapshot(change.writer, session, identity)
            change.writer.delete_snapshot(identity)
            change.add_event(SNAPSHOT_DELETED, identity)

        self.unit_of_work.change_session(session, work)


def save_automatic_snapshot(
    unit_of_work: UnitOfWork, change: SessionChange, name: str, keep_id: str = ""
) -> SessionSnapshot:
    """A snapshot that is made before blocks are replaced; old ones of that kind make room."""
    snapshot = _save_snapshot(unit_of_work, change, name[:MAX_NAME], automatic=True)
    change.writer.prune_automatic_snapshots(change.session.id, MAX_AUTOMATIC_SNAPSHOTS, keep_id)
    return snapshot


def _save_snapshot(
    unit_of_work: UnitOfWork, change: SessionChange, name: str, *, automatic: bool
) -> SessionSnapshot:
    snapshot = SessionSnapshot(
        id=unit_of_work.new_id(),
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
