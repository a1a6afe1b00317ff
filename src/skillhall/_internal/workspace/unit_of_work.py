"""The unit of work: one transaction per change, with version checks and events."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.storage.records import Event, SessionBudgets
from skillhall._internal.workspace.validation import MAX_BLOCKS
from skillhall.errors import RecordNotFound, TooLarge, VersionConflict

if TYPE_CHECKING:
    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.ports import WorkspaceReader, WorkspaceStore, WorkspaceWriter
    from skillhall._internal.storage.records import Block, Session

_T = TypeVar("_T")

_ID = re.compile(r"[0-9a-z]{1,64}")


@dataclass(frozen=True, slots=True)
class UnitOfWork:
    """Store, clock and id generator that the services share."""

    store: WorkspaceStore
    clock: Callable[[], str]  # UTC time as a string that sorts
    new_id: Callable[[], str]
    default_budgets: Callable[[], SessionBudgets] = SessionBudgets  # of new sessions

    def acting_as(self, actor: Actor) -> UnitOfWork:
        """Return the same unit of work for changes by an actor, which the audit log records."""
        return replace(self, store=self.store.acting_as(actor))

    def change_session(self, session: str, work: Callable[[SessionChange], _T]) -> _T:
        """Run `work` in a transaction that locks the session, and return its result.

        Raises: RecordNotFound, DatabaseUnavailable, DatabaseFull, and whatever `work` raises.
        """

        def transaction(writer: WorkspaceWriter) -> _T:
            current = writer.lock_session(validate_id("session", session))
            if current is None:
                raise RecordNotFound("session", session)
            at = self.clock()
            updated = replace(current, revision=current.revision + 1, updated=at)
            change = SessionChange(writer, updated, at, self.new_id)
            result = work(change)
            # Without an event nothing changed, and the revision must stay the same.
            if change.events:
                writer.save_session(change.session)
                writer.add_events(*change.events)
            return result

        return self.store.write(transaction)


@dataclass(slots=True)
class SessionChange:
    """A change to one session, which stays locked until the transaction commits."""

    writer: WorkspaceWriter
    session: Session  # as it will be saved
    at: str
    new_id: Callable[[], str]
    events: list[Event] = field(default_factory=list)

    @property
    def revision(self) -> int:
        """Return the new revision, which is also the version of every changed record."""
        return self.session.revision

    def add_event(self, kind: str, subject: str, **data: str | int | None) -> None:
        """Record an event, to be saved with the change."""
        event = Event(kind, subject, self.session.id, self.revision, data, self.at)
        self.events.append(event)

    def check_unchanged_since(self, revision: int | None) -> None:
        """Check that the session was at `revision` before this change, unless it is None.

        Raises: VersionConflict.
        """
        if revision is not None:
            # `self.revision` is the new revision, one more than the stored one.
            check_version("session", self.session.id, revision, self.revision - 1, None)

    def check_block_limit(self, added: int) -> None:
        """Check that `added` more blocks fit into the session. Raises: TooLarge."""
        if self.writer.count_blocks(self.session.id) + added > MAX_BLOCKS:
            raise TooLarge("the session", MAX_BLOCKS, "blocks")

    def get_block(self, identity: str, version: int) -> Block:
        """Return a block to be changed. Raises: RecordNotFound, VersionConflict."""
        block = get_block(self.writer, self.session.id, identity)
        check_version("block", identity, version, block.version, block)
        return block

    def save_block(self, block: Block) -> Block:
        """Save a changed block; return it with its new version."""
        saved = replace(block, version=self.revision, updated=self.at)
        self.writer.save_block(saved)
        return saved


def validate_id(kind: str, identity: str) -> str:
    """Return the id if it is well-formed. Raises: RecordNotFound."""
    if not is_id(identity):
        raise RecordNotFound(kind, identity)
    return identity


def is_id(text: str) -> bool:
    """Whether the text is a well-formed id."""
    return _ID.fullmatch(text) is not None


def get_session(reader: WorkspaceReader, identity: str) -> Session:
    """Return the session with this id. Raises: RecordNotFound."""
    session = reader.session(validate_id("session", identity))
    if session is None:
        raise RecordNotFound("session", identity)
    return session


def get_block(reader: WorkspaceReader, session: str, identity: str) -> Block:
    """Return a block of the session that is not deleted. Raises: RecordNotFound."""
    block = reader.block(session, validate_id("block", identity))
    if block is None or block.deleted is not None:
        raise RecordNotFound("block", identity)
    return block


def check_version(kind: str, identity: str, expected: int, version: int, current: object) -> None:
    """Check that a change is based on the current version. Raises: VersionConflict."""
    if expected != version:
        raise VersionConflict(kind, identity, expected, version, current)
