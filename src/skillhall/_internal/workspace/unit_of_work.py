"""The desk that the verbs work at: a store, a clock, a source of ids, and one way to change."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.storage.records import Event
from skillhall._internal.workspace.validation import MAX_BLOCKS
from skillhall.errors import RecordNotFound, TooLarge, VersionConflict

if TYPE_CHECKING:
    from skillhall._internal.storage.ports import WorkspaceReader, WorkspaceStore, WorkspaceWriter
    from skillhall._internal.storage.records import Block, Session

_T = TypeVar("_T")

_ID = re.compile(r"[0-9a-z]{1,64}")


@dataclass(frozen=True, slots=True)
class UnitOfWork:
    """What every verb needs."""

    store: WorkspaceStore
    clock: Callable[[], str]  # the time in UTC, as a text that sorts
    new_id: Callable[[], str]

    def change_session(self, session: str, work: Callable[[SessionChange], _T]) -> _T:
        """What the work returns, once all that it did to the session is kept.

        Raises: RecordNotFound, DatabaseUnavailable, DatabaseFull, and what the work raises.
        """

        def whole(write: WorkspaceWriter) -> _T:
            found = write.lock_session(validate_id("session", session))
            if found is None:
                raise RecordNotFound("session", session)
            at = self.clock()
            next_state = replace(found, revision=found.revision + 1, updated=at)
            change = SessionChange(write, next_state, at)
            result = work(change)
            if change.events:
                write.save_session(change.session)
                write.add_events(*change.events)
            return result

        return self.store.write(whole)


@dataclass(slots=True)
class SessionChange:
    """One change of a session: whoever makes it is alone with the session until it is kept."""

    writer: WorkspaceWriter
    session: Session  # as it will be
    at: str
    events: list[Event] = field(default_factory=list)

    @property
    def revision(self) -> int:
        """The version that everything gets which this change touches."""
        return self.session.revision

    def add_event(self, kind: str, subject: str, **data: str | int | None) -> None:
        """Tell that something happened."""
        event = Event(kind, subject, self.session.id, self.revision, data, self.at)
        self.events.append(event)

    def check_unchanged_since(self, revision: int | None) -> None:
        """See that nothing happened since a revision, if one is given. Raises: VersionConflict."""
        if revision is not None:
            check_version("session", self.session.id, revision, self.revision - 1, None)

    def check_block_limit(self, added: int) -> None:
        """See that so many blocks still fit. Raises: TooLarge."""
        if self.writer.count_blocks(self.session.id) + added > MAX_BLOCKS:
            raise TooLarge("the session", MAX_BLOCKS, "blocks")


def validate_id(kind: str, identity: str) -> str:
    """The id, if it can be one. Raises: RecordNotFound, before a database is asked for nonsense."""
    if not is_id(identity):
        raise RecordNotFound(kind, identity)
    return identity


def is_id(text: str) -> bool:
    """Whether a text can be the id of anything."""
    return _ID.fullmatch(text) is not None


def get_session(reader: WorkspaceReader, identity: str) -> Session:
    """The session with that id. Raises: RecordNotFound."""
    session = reader.session(validate_id("session", identity))
    if session is None:
        raise RecordNotFound("session", identity)
    return session


def get_block(reader: WorkspaceReader, session: str, identity: str) -> Block:
    """The block of that session, if it is not deleted. Raises: RecordNotFound."""
    block = reader.block(session, validate_id("block", identity))
    if block is None or block.deleted is not None:
        raise RecordNotFound("block", identity)
    return block


def check_version(kind: str, identity: str, expected: int, version: int, current: object) -> None:
    """See that a change is made against what is there. Raises: VersionConflict."""
    if expected != version:
        raise VersionConflict(kind, identity, expected, version, current)
