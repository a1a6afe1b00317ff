"""The verbs on sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import Budgets, Event, Session
from skillhall._internal.workspace.blocks import append_contents
from skillhall._internal.workspace.unit_of_work import Change, compare, found_session, known_id
from skillhall._internal.workspace.validation import MAX_NAME, checked_budgets, checked_name
from skillhall.errors import RecordNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.storage.ports import Reading, Writing
    from skillhall._internal.storage.records import Content, Zone, ZoneSize
    from skillhall._internal.workspace.unit_of_work import Desk

CREATED, EDITED, DELETED = "session-created", "session-edited", "session-deleted"
NO_BUDGETS = Budgets()
_COPY = " (copy)"


class Overview(NamedTuple):
    """A session and how much lies in it."""

    session: Session
    sizes: Mapping[Zone, ZoneSize]


@dataclass(frozen=True, slots=True)
class Sessions:
    """All sessions."""

    desk: Desk

    def list(self, after: str = "", limit: int = 100) -> list[Session]:
        """A page of sessions, in order of their ids, which is the order of their creation."""
        return [*self.desk.store.read(lambda read: read.sessions(after, limit))]

    def find(self, identity: str) -> Session:
        """One session. Raises: RecordNotFound."""
        return self.desk.store.read(lambda read: found_session(read, identity))

    def overview(self, identity: str) -> Overview:
        """One session and its zones. Raises: RecordNotFound."""

        def work(read: Reading) -> Overview:
            return Overview(found_session(read, identity), read.sizes(identity))

        return self.desk.store.read(work)

    def create(
        self, name: str, budgets: Budgets = NO_BUDGETS, contents: Sequence[Content] = ()
    ) -> Session:
        """A new session, with blocks if there are contents for them.

        Raises: TextRefused, FieldRefused, TooLarge.
        """
        checked, limits = checked_name("name", name), checked_budgets(budgets)
        return self.desk.store.write(
            lambda write: started(self.desk, write, checked, limits, contents)
        )

    def edit(
        self, identity: str, version: int, *, name: str | None, budgets: Budgets | None
    ) -> Session:
        """A session with another name or other budgets.

        Raises: RecordNotFound, VersionConflict, TextRefused, FieldRefused, TooLarge.
        """
        checked = None if name is None else checked_name("name", name)
        limits = None if budgets is None else checked_budgets(budgets)

        def work(change: Change) -> Session:
            before = found_session(change.write, identity)
            compare("session", identity, version, before.version, before)
            change.session = replace(
                change.session,
                name=checked or before.name,
                budgets=limits or before.budgets,
                version=change.revision,
            )
            change.note(EDITED, identity, version=change.revision)
            return change.session

        return self.desk.change(identity, work)

    def duplicate(self, identity: str, name: str | None = None) -> Session:
        """Another session with the same blocks.

        Raises: RecordNotFound, TextRefused, FieldRefused, TooLarge.
        """
        checked = None if name is None else checked_name("name", name)

        def work(write: Writing) -> Session:
            old = found_session(write, identity)
            contents = [block.content for block in write.blocks(identity)]
            called = checked or f"{old.name[: MAX_NAME - len(_COPY)]}{_COPY}"
            return started(self.desk, write, called, old.budgets, contents)

        return self.desk.store.write(work)

    def delete(self, identity: str, version: int) -> None:
        """Remove a session with all its blocks and snapshots.

        Raises: RecordNotFound, VersionConflict.
        """

        def work(write: Writing) -> None:
            session = write.locked(known_id("session", identity))
            if session is None:
                raise RecordNotFound("session", identity)
            compare("session", identity, version, session.version, session)
            write.drop_session(identity)
            gone = Event(DELETED, identity, identity, session.revision + 1, {}, self.desk.clock())
            write.note(gone)

        self.desk.store.write(work)


def started(
    desk: Desk, write: Writing, name: str, budgets: Budgets, contents: Sequence[Content]
) -> Session:
    """A session that is made in an open change. Raises: TooLarge."""
    at = desk.clock()
    session = Session(desk.new_id(), name, budgets, version=1, revision=1, created=at, updated=at)
    write.add_session(session)
    change = Change(write, session, at)
    if contents:
        append_contents(desk, change, contents)
    change.note(CREATED, session.id, blocks=len(contents))
    write.note(*change.events)
    return session
