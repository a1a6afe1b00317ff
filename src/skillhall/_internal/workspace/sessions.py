"""Operations on sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import Event, Session, SessionBudgets
from skillhall._internal.workspace.blocks import append_contents
from skillhall._internal.workspace.unit_of_work import (
    SessionChange,
    check_version,
    get_session,
    validate_id,
)
from skillhall._internal.workspace.validation import MAX_NAME, validate_budgets, validate_name
from skillhall.errors import RecordNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.storage.ports import WorkspaceWriter
    from skillhall._internal.storage.records import BlockContent, Zone, ZoneSize
    from skillhall._internal.workspace.unit_of_work import UnitOfWork

SESSION_CREATED, SESSION_EDITED = "session-created", "session-edited"
SESSION_DELETED = "session-deleted"
_COPY = " (copy)"


class SessionOverview(NamedTuple):
    """A session and the sizes of its zones."""

    session: Session
    zone_sizes: Mapping[Zone, ZoneSize]


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of a workspace."""

    unit_of_work: UnitOfWork

    def list(self, after: str = "", limit: int = 100) -> list[Session]:
        """Return a page of sessions, ordered by id, which is the order of creation."""
        return [*self.unit_of_work.store.read(lambda read: read.sessions(after, limit))]

    def find(self, identity: str) -> Session:
        """Return a session. Raises: RecordNotFound."""
        return self.unit_of_work.store.read(lambda read: get_session(read, identity))

    def overview(self, identity: str) -> SessionOverview:
        """Return a session and the sizes of its zones. Raises: RecordNotFound."""
        return self.unit_of_work.store.read(
            lambda read: SessionOverview(get_session(read, identity), read.zone_sizes(identity))
        )

    def create(
        self,
        name: str,
        budgets: SessionBudgets | None = None,
        contents: Sequence[BlockContent] = (),
    ) -> Session:
        """Create a session, with a block for each of `contents`; `None` is the default budgets.

        Raises: TextRefused, FieldRefused, TooLarge.
        """
        valid = validate_name("name", name)
        chosen = self.unit_of_work.default_budgets() if budgets is None else budgets
        validate_budgets(chosen)
        return self.unit_of_work.store.write(
            lambda write: insert_session(self.unit_of_work, write, valid, chosen, contents)
        )

    def edit(
        self, identity: str, version: int, *, name: str | None, budgets: SessionBudgets | None
    ) -> Session:
        """Change the name or the budgets of a session; `None` keeps a value.

        Raises: RecordNotFound, VersionConflict, TextRefused, FieldRefused, TooLarge.
        """
        new_name = None if name is None else validate_name("name", name)
        new_budgets = None if budgets is None else validate_budgets(budgets)

        def work(change: SessionChange) -> Session:
            before = get_session(change.writer, identity)
            check_version("session", identity, version, before.version, before)
            change.session = replace(
                change.session,
                name=new_name or before.name,
                budgets=new_budgets or before.budgets,
                version=change.revision,
            )
            change.add_event(SESSION_EDITED, identity, version=change.revision)
            return change.session

        return self.unit_of_work.change_session(identity, work)

    def duplicate(self, identity: str, name: str | None = None) -> Session:
        """Create a session with the same blocks and budgets.

        Raises: RecordNotFound, TextRefused, FieldRefused, TooLarge.
        """
        checked = None if name is None else validate_name("name", name)

        def work(write: WorkspaceWriter) -> Session:
            original = get_session(write, identity)
            contents = [block.content for block in write.blocks(identity)]
            copy_name = checked or f"{original.name[: MAX_NAME - len(_COPY)]}{_COPY}"
            return insert_session(self.unit_of_work, write, copy_name, original.budgets, contents)

        return self.unit_of_work.store.write(work)

    def delete(self, identity: str, version: int) -> None:
        """Delete a session with all its blocks and snapshots.

        Raises: RecordNotFound, VersionConflict.
        """

        def work(write: WorkspaceWriter) -> None:
            session = write.lock_session(validate_id("session", identity))
            if session is None:
                raise RecordNotFound("session", identity)
            check_version("session", identity, version, session.version, session)
            write.delete_session(identity)
            revision, at = session.revision + 1, self.unit_of_work.clock()
            write.add_events(Event(SESSION_DELETED, identity, identity, revision, {}, at))

        self.unit_of_work.store.write(work)


def insert_session(
    unit_of_work: UnitOfWork,
    writer: WorkspaceWriter,
    name: str,
    budgets: SessionBudgets,
    contents: Sequence[BlockContent],
) -> Session:
    """Create a session within an open transaction. Raises: TooLarge."""
    at = unit_of_work.clock()
    session = Session(
        unit_of_work.new_id(), name, budgets, version=1, revision=1, created=at, updated=at
    )
    writer.add_session(session)
    change = SessionChange(writer, session, at, unit_of_work.new_id)
    if contents:
        append_contents(change, contents)
    change.add_event(SESSION_CREATED, session.id, blocks=len(contents))
    writer.add_events(*change.events)
    return session
