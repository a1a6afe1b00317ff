"""The verbs on snapshots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import Snapshot
from skillhall._internal.workspace.unit_of_work import found_session, known_id
from skillhall._internal.workspace.validation import MAX_NAME, checked_name
from skillhall.errors import RecordNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.storage.ports import Reading
    from skillhall._internal.storage.records import Block, Session
    from skillhall._internal.workspace.unit_of_work import Change, Desk

SAVED, RESTORED, DELETED = "snapshot-saved", "snapshot-restored", "snapshot-deleted"
KEPT_AUTOMATIC = 20  # snapshots of a session that we made ourselves


class Restored(NamedTuple):
    """What restoring did."""

    session: Session
    before: Snapshot  # the session as it was


class SavedSession(NamedTuple):
    """A snapshot and its blocks."""

    snapshot: Snapshot
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The snapshots of any session."""

    desk: Desk

    def list(self, session: str) -> list[Snapshot]:
        """Those of one session, the newest first. Raises: RecordNotFound."""

        def work(read: Reading) -> Sequence[Snapshot]:
            found_session(read, session)
            return read.snapshots(session)

        return [*self.desk.store.read(work)]

    def find(self, session: str, identity: str) -> SavedSession:
        """One with its blocks. Raises: RecordNotFound."""

        def work(read: Reading) -> SavedSession:
            return SavedSession(_found(read, session, identity), read.snapshot_blocks(identity))

        return self.desk.store.read(work)

    def save(self, session: str, name: str) -> Snapshot:
        """The session as it is. Raises: RecordNotFound, TextRefused, FieldRefused, TooLarge."""
        checked = checked_name("name", name)
        return self.desk.change(
            session, lambda change: _keep(self.desk, change, checked, automatic=False)
        )

    def restore(self, session: str, identity: str, revision: int | None = None) -> Restored:
        """The session as it was then; as it is now, it becomes a snapshot too.

        With `revision`, only if nothing in the session was changed since that one.
        Raises: RecordNotFound, VersionConflict.
        """

        def work(change: Change) -> Restored:
            snapshot = _found(change.write, session, identity)
            change.refuse_changed(revision)
            before = keep_before(self.desk, change, f"before {snapshot.name}", spare=snapshot.id)
            change.write.drop_blocks(session)
            change.write.restore_blocks(snapshot, change.revision, change.at)
            change.session = replace(
                change.session, budgets=snapshot.budgets, version=change.revision
            )
            change.note(RESTORED, identity)
            return Restored(change.session, before)

        return self.desk.change(session, work)

    def delete(self, session: str, identity: str) -> None:
        """Remove a snapshot. Raises: RecordNotFound."""

        def work(change: Change) -> None:
            _found(change.write, session, identity)
            change.write.drop_snapshot(identity)
            change.note(DELETED, identity)

        self.desk.change(session, work)


def keep_before(desk: Desk, change: Change, name: str, spare: str = "") -> Snapshot:
    """A snapshot that is made before blocks are replaced; old ones of that kind make room."""
    snapshot = _keep(desk, change, name[:MAX_NAME], automatic=True)
    change.write.forget_automatic(change.session.id, KEPT_AUTOMATIC, spare)
    return snapshot


def _keep(desk: Desk, change: Change, name: str, *, automatic: bool) -> Snapshot:
    snapshot = Snapshot(
        id=desk.new_id(),
        session=change.session.id,
        name=name,
        budgets=change.session.budgets,
        revision=change.revision,
        created=change.at,
        automatic=automatic,
    )
    change.write.add_snapshot(snapshot)
    change.note(SAVED, snapshot.id, name=name)
    return snapshot


def _found(read: Reading, session: str, identity: str) -> Snapshot:
    snapshot = read.snapshot(known_id("session", session), known_id("snapshot", identity))
    if snapshot is None:
        raise RecordNotFound("snapshot", identity)
    return snapshot
