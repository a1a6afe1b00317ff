"""The verbs on templates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import Event, Template
from skillhall._internal.workspace.blocks import append_contents
from skillhall._internal.workspace.sessions import started
from skillhall._internal.workspace.snapshots import keep_before
from skillhall._internal.workspace.unit_of_work import compare, found_session, is_id
from skillhall._internal.workspace.validation import checked_description, checked_name
from skillhall.errors import Conflict, RecordNotFound, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.storage.ports import Reading, Writing
    from skillhall._internal.storage.records import Content, Session, Snapshot
    from skillhall._internal.workspace.unit_of_work import Change, Desk

SAVED, EDITED, DELETED, APPLIED = (
    "template-saved",
    "template-edited",
    "template-deleted",
    "template-applied",
)


class Applying(StrEnum):
    """What becomes of the blocks that are there."""

    REPLACE = "replace"
    APPEND = "append"


class Arrangement(NamedTuple):
    """A template and what its blocks say, in order."""

    template: Template
    contents: Sequence[Content]


class Applied(NamedTuple):
    """What applying a template did."""

    session: Session
    blocks: int
    before: Snapshot | None  # the session as it was, if blocks were replaced


@dataclass(frozen=True, slots=True)
class Templates:
    """All templates."""

    desk: Desk

    def list(self) -> list[Template]:
        """All of them, by name."""
        return [*self.desk.store.read(lambda read: read.templates())]

    def find(self, identity: str) -> Arrangement:
        """One with its contents, by id or by name. Raises: RecordNotFound."""

        def work(read: Reading) -> Arrangement:
            template = _found(read, identity)
            return Arrangement(template, read.template_contents(template.id))

        return self.desk.store.read(work)

    def save(self, session: str, name: str, description: str = "") -> Template:
        """A template out of a session's blocks.

        Raises: RecordNotFound, Conflict, TextRefused, FieldRefused, TooLarge.
        """
        checked, described = checked_name("name", name), checked_description(description)

        def work(write: Writing) -> Template:
            source = found_session(write, session)
            _refuse_taken(write, checked, "")
            at, identity = self.desk.clock(), self.desk.new_id()
            template = Template(identity, checked, described, source.budgets, 1, at, at)
            write.add_template(template, _contents(write, session))
            write.note(Event(SAVED, identity, "", 1, {"name": checked}, at))
            return template

        return self.desk.store.write(work)

    def edit(
        self,
        identity: str,
        version: int,
        *,
        name: str | None = None,
        description: str | None = None,
        session: str | None = None,
    ) -> Template:
        """A template with another name, or with the blocks of a session as they are.

        Raises: RecordNotFound, VersionConflict, Conflict, TextRefused, FieldRefused, TooLarge.
        """
        checked = None if name is None else checked_name("name", name)
        described = None if description is None else checked_description(description)

        def work(write: Writing) -> Template:
            old = _found(write, identity)
            compare("template", old.id, version, old.version, old)
            if checked is not None:
                _refuse_taken(write, checked, old.id)
            source = None if session is None else found_session(write, session)
            template = replace(
                old,
                name=checked or old.name,
                description=old.description if described is None else described,
                budgets=old.budgets if source is None else source.budgets,
                version=old.version + 1,
                updated=self.desk.clock(),
            )
            contents = None if session is None else _contents(write, session)
            write.save_template(template, contents)
            write.note(Event(EDITED, old.id, "", template.version, {}, template.updated))
            return template

        return self.desk.store.write(work)

    def delete(self, identity: str, version: int) -> None:
        """Remove a template. Raises: RecordNotFound, VersionConflict."""

        def work(write: Writing) -> None:
            old = _found(write, identity)
            compare("template", old.id, version, old.version, old)
            write.drop_template(old.id)
            write.note(Event(DELETED, old.id, "", old.version, {}, self.desk.clock()))

        self.desk.store.write(work)

    def start(self, identity: str, name: str) -> Session:
        """A new session with the template's blocks and budgets.

        Raises: RecordNotFound, TextRefused, FieldRefused, TooLarge.
        """
        checked = checked_name("name", name)

        def work(write: Writing) -> Session:
            template = _found(write, identity)
            contents = write.template_contents(template.id)
            return started(self.desk, write, checked, template.budgets, contents)

        return self.desk.store.write(work)

    def apply(
        self, session: str, identity: str, how: Applying, revision: int | None = None
    ) -> Applied:
        """A session with the template's blocks, after its own or in place of them.

        With `revision`, only if nothing in the session was changed since that one.
        Raises: RecordNotFound, VersionConflict, TooLarge.
        """

        def work(change: Change) -> Applied:
            change.refuse_changed(revision)
            template = _found(change.write, identity)
            before = None
            if how is Applying.REPLACE:
                before = keep_before(self.desk, change, f"before {template.name}")
                change.write.drop_blocks(session)
            contents = change.write.template_contents(template.id)
            blocks = append_contents(self.desk, change, contents)
            change.note(APPLIED, template.id, how=how.value, blocks=len(blocks))
            return Applied(change.session, len(blocks), before)

        return self.desk.change(session, work)


def _found(read: Reading, identity: str) -> Template:
    template = read.template(identity) if is_id(identity) else None
    if template is None and (named := _named(read, identity)) is not None:
        template = read.template(named.id)
    if template is None:
        raise RecordNotFound("template", identity)
    return template


def _named(read: Reading, name: str) -> Template | None:
    try:
        return read.template_named(checked_name("name", name))
    except SkillhallError:  # no template has such a name
        return None


def _refuse_taken(read: Reading, name: str, own: str) -> None:
    other = read.template_named(name)
    if other is not None and other.id != own:
        raise Conflict(f"a template named {name!r}", "choose another name, or update that one")


def _contents(read: Reading, session: str) -> list[Content]:
    return [block.content for block in read.blocks(session)]
