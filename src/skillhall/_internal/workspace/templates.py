"""Operations on templates."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import Event, Template
from skillhall._internal.workspace.blocks import append_contents
from skillhall._internal.workspace.sessions import insert_session
from skillhall._internal.workspace.snapshots import save_automatic_snapshot
from skillhall._internal.workspace.unit_of_work import check_version, get_session, is_id
from skillhall._internal.workspace.validation import validate_description, validate_name
from skillhall.errors import Conflict, RecordNotFound, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.storage.ports import WorkspaceReader, WorkspaceWriter
    from skillhall._internal.storage.records import BlockContent, Session, SessionSnapshot
    from skillhall._internal.workspace.unit_of_work import SessionChange, UnitOfWork

TEMPLATE_SAVED, TEMPLATE_EDITED = "template-saved", "template-edited"
TEMPLATE_DELETED, TEMPLATE_APPLIED = "template-deleted", "template-applied"


class ApplyMode(StrEnum):
    """Whether a template replaces the existing blocks or is added after them."""

    REPLACE = "replace"
    APPEND = "append"


class TemplateDetail(NamedTuple):
    """A template and the contents of its blocks, in order."""

    template: Template
    contents: Sequence[BlockContent]


class ApplyResult(NamedTuple):
    """Result of applying a template."""

    session: Session
    block_count: int
    before: SessionSnapshot | None  # the session as it was, if blocks were replaced


@dataclass(frozen=True, slots=True)
class Templates:
    """The templates of a workspace."""

    unit_of_work: UnitOfWork

    def list(self) -> list[Template]:
        """Return all templates, sorted by name."""
        return [*self.unit_of_work.store.read(lambda read: read.templates())]

    def find(self, identity: str) -> TemplateDetail:
        """Return a template with its contents, by id or name. Raises: RecordNotFound."""

        def work(read: WorkspaceReader) -> TemplateDetail:
            template = _get_template(read, identity)
            return TemplateDetail(template, read.template_contents(template.id))

        return self.unit_of_work.store.read(work)

    def save(self, session: str, name: str, description: str = "") -> Template:
        """Save the blocks of a session as a template.

        Raises: RecordNotFound, Conflict, TextRefused, FieldRefused, TooLarge.
        """
        name, description = validate_name("name", name), validate_description(description)

        def work(write: WorkspaceWriter) -> Template:
            source = get_session(write, session)
            _check_name_free(write, name, "")
            at, identity = self.unit_of_work.clock(), self.unit_of_work.new_id()
            template = Template(identity, name, description, source.budgets, 1, at, at)
            write.add_template(template, [block.content for block in write.blocks(session)])
            write.add_events(Event(TEMPLATE_SAVED, identity, "", 1, {"name": name}, at))
            return template

        return self.unit_of_work.store.write(work)

    def edit(
        self,
        identity: str,
        version: int,
        *,
        name: str | None = None,
        description: str | None = None,
        session: str | None = None,
    ) -> Template:
        """Change the name, the description or the blocks of a template.

        With `session`, its blocks and budgets replace those of the template.
        Raises: RecordNotFound, VersionConflict, Conflict, TextRefused, FieldRefused, TooLarge.
        """
        new_name = None if name is None else validate_name("name", name)
        new_text = None if description is None else validate_description(description)

        def work(write: WorkspaceWriter) -> Template:
            old = _get_template(write, identity)
            check_version("template", old.id, version, old.version, old)
            if new_name is not None:
                _check_name_free(write, new_name, old.id)
            source = None if session is None else get_session(write, session)
            template = replace(
                old,
                name=new_name or old.name,
                description=old.description if new_text is None else new_text,
                budgets=old.budgets if source is None else source.budgets,
                version=old.version + 1,
                updated=self.unit_of_work.clock(),
            )
            blocks = None if session is None else write.blocks(session)
            contents = None if blocks is None else [block.content for block in blocks]
            write.save_template(template, contents)
            write.add_events(
                Event(TEMPLATE_EDITED, old.id, "", template.version, {}, template.updated)
            )
            return template

        return self.unit_of_work.store.write(work)

    def delete(self, identity: str, version: int) -> None:
        """Delete a template. Raises: RecordNotFound, VersionConflict."""

        def work(write: WorkspaceWriter) -> None:
            old = _get_template(write, identity)
            check_version("template", old.id, version, old.version, old)
            write.delete_template(old.id)
            write.add_events(
                Event(TEMPLATE_DELETED, old.id, "", old.version, {}, self.unit_of_work.clock())
            )

        self.unit_of_work.store.write(work)

    def create_session(self, identity: str, name: str) -> Session:
        """Create a session with the template's blocks and budgets.

        Raises: RecordNotFound, TextRefused, FieldRefused, TooLarge.
        """
        name = validate_name("name", name)

        def work(write: WorkspaceWriter) -> Session:
            template = _get_template(write, identity)
            contents = write.template_contents(template.id)
            return insert_session(self.unit_of_work, write, name, template.budgets, contents)

        return self.unit_of_work.store.write(work)

    def apply(
        self, session: str, identity: str, mode: ApplyMode, revision: int | None = None
    ) -> ApplyResult:
        """Add the template's blocks to a session, or replace the session's blocks.

        With `revision`, the session must still have that revision.
        Raises: RecordNotFound, VersionConflict, TooLarge.
        """

        def work(change: SessionChange) -> ApplyResult:
            change.check_unchanged_since(revision)
            template = _get_template(change.writer, identity)
            before = None
            if mode is ApplyMode.REPLACE:
                before = save_automatic_snapshot(change, f"before {template.name}")
                change.writer.delete_blocks(session)
            contents = change.writer.template_contents(template.id)
            blocks = append_contents(change, contents)
            change.add_event(TEMPLATE_APPLIED, template.id, how=mode.value, blocks=len(blocks))
            return ApplyResult(change.session, len(blocks), before)

        return self.unit_of_work.change_session(session, work)


def _get_template(reader: WorkspaceReader, identity: str) -> Template:
    """Return the template with this id or name. Raises: RecordNotFound."""
    template = reader.template(identity) if is_id(identity) else None
    if template is None:
        with suppress(SkillhallError):  # not a valid name, so no template has it
            named = reader.find_template_by_name(validate_name("name", identity))
            # Read again by its id, which locks it in a write transaction.
            template = reader.template(named.id) if named else None
    if template is None:
        raise RecordNotFound("template", identity)
    return template


def _check_name_free(reader: WorkspaceReader, name: str, own_id: str) -> None:
    other = reader.find_template_by_name(name)
    if other is not None and other.id != own_id:
        raise Conflict(f"a template named {name!r}", "choose another name, or update that template")
