"""The pages that keep arrangements: templates, snapshots, and blocks that were deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, frame_of, page_answer, redirect
from skillhall._internal.web.sessions.board_pages import title_of
from skillhall._internal.web.sessions.page_base import (
    DeskPages,
    number_in,
    session_address,
    status_for,
    told,
)
from skillhall._internal.workspace.templates import Applying
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.http.response import Answer
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Problem
    from skillhall._internal.workspace import Block, Session, Snapshot, Template


@dataclass(frozen=True, slots=True)
class Gone:
    """A block that was deleted."""

    block: Block
    title: str


@dataclass(frozen=True, slots=True)
class KeepPage(Page):
    """What is kept of one session, and what can be brought into it."""

    session: Session
    snapshots: Sequence[Snapshot]
    templates: Sequence[Template]
    gone: tuple[Gone, ...]
    name: str
    description: str
    failed: str
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """One template as the list shows it."""

    template: Template
    types: tuple[str, ...]  # of its blocks, in order
    tokens: int
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class TemplatesPage(Page):
    """All templates."""

    rows: tuple[TemplateRow, ...]


class KeepPages(DeskPages):
    """The calls of these pages."""

    def show(self, visit: Visit) -> Answer:
        """What is kept of a session."""
        return self._keep(visit)

    def save_snapshot(self, visit: Visit) -> Answer:
        """The session as it is."""
        try:
            made = self._desk().snapshots.save(visit.names[1], visit.form.text("name"))
        except SkillhallError as error:
            return self._keep(visit, "snapshot", error)
        return self._site.done(_keep_address(visit), Notice("kept", made.name))

    def restore(self, visit: Visit) -> Answer:
        """The session as it was."""
        found = self._desk().snapshots.find(visit.names[1], visit.names[3]).snapshot
        try:
            self._desk().snapshots.restore(visit.names[1], found.id, _revision(visit))
        except SkillhallError as error:
            return self._keep(visit, "snapshots", error)
        return self._site.done(session_address(visit.names[1]), Notice("restored", found.name))

    def delete_snapshot(self, visit: Visit) -> Answer:
        """Remove a snapshot."""
        found = self._desk().snapshots.find(visit.names[1], visit.names[3]).snapshot
        self._desk().snapshots.delete(visit.names[1], found.id)
        return self._site.done(_keep_address(visit), Notice("deleted", found.name))

    def save_template(self, visit: Visit) -> Answer:
        """A template out of the session's blocks, or those in place of a template's own."""
        form, templates = visit.form, self._desk().templates
        try:
            if form.text("template"):
                old = templates.find(form.text("template")).template
                made = templates.edit(old.id, old.version, session=visit.names[1])
            else:
                made = templates.save(visit.names[1], form.text("name"), form.text("description"))
        except SkillhallError as error:
            return self._keep(visit, "template", error)
        return self._site.done(_keep_address(visit), Notice("template_saved", made.name))

    def apply(self, visit: Visit) -> Answer:
        """A template's blocks, after those of the session or in place of them."""
        templates, is_all = self._desk().templates, visit.form.text("how") == Applying.REPLACE
        try:
            found = templates.find(visit.form.text("template")).template
            how = Applying.REPLACE if is_all else Applying.APPEND
            revision = _revision(visit) if is_all else None
            templates.apply(visit.names[1], found.id, how, revision)
        except SkillhallError as error:
            return self._keep(visit, "apply", error)
        return self._site.done(session_address(visit.names[1]), Notice("applied", found.name))

    def list_templates(self, visit: Visit) -> Answer:
        """All templates."""
        return self._templates(visit)

    def edit_template(self, visit: Visit) -> Answer:
        """Another name or description."""
        form = visit.form
        try:
            self._desk().templates.edit(
                visit.names[1],
                number_in(form.text("version")),
                name=form.text("name"),
                description=form.text("description"),
            )
        except SkillhallError as error:
            return self._templates(visit, error)
        return self._site.done("/templates", Notice("edited", form.text("name")))

    def delete_template(self, visit: Visit) -> Answer:
        """Remove a template."""
        try:
            found = self._desk().templates.find(visit.names[1]).template
            self._desk().templates.delete(found.id, number_in(visit.form.text("version")))
        except SkillhallError as error:
            return self._templates(visit, error)
        return self._site.done("/templates", Notice("deleted", found.name))

    def start(self, visit: Visit) -> Answer:
        """A new session with the template's blocks."""
        templates = self._desk().templates
        found = templates.find(visit.names[1]).template
        made = templates.start(found.id, visit.form.text("name").strip() or found.name)
        return redirect(session_address(made.id))

    def _keep(self, visit: Visit, failed: str = "", error: SkillhallError | None = None) -> Answer:
        desk, identity = self._desk(), visit.names[1]
        session = desk.sessions.find(identity)
        page = KeepPage(
            frame_of(visit, visit.texts("keep.title"), "sessions"),
            session=session,
            snapshots=desk.snapshots.list(identity),
            templates=desk.templates.list(),
            gone=tuple(Gone(one, title_of(one)[0]) for one in desk.blocks.deleted(identity)),
            name=visit.form.text("name"),
            description=visit.form.text("description"),
            failed=failed,
            problem=told(visit, error),
        )
        return page_answer("keep.html", page, status=status_for(error))

    def _templates(self, visit: Visit, error: SkillhallError | None = None) -> Answer:
        templates, problem = self._desk().templates, told(visit, error)
        failed = visit.names[1] if len(visit.names) > 1 else ""
        rows = []
        for one in templates.list():
            contents = templates.find(one.id).contents
            tokens = sum(content.tokens for content in contents)
            kinds = tuple(content.type for content in contents)
            rows.append(TemplateRow(one, kinds, tokens, problem if one.id == failed else None))
        frame = frame_of(visit, visit.texts("templates.title"), "sessions")
        page = TemplatesPage(frame, tuple(rows))
        return page_answer("templates.html", page, status=status_for(error))


def _keep_address(visit: Visit) -> str:
    return f"{session_address(visit.names[1])}/keep"


def _revision(visit: Visit) -> int:
    """The session as the person saw it: what came since is not replaced unseen."""
    return number_in(visit.form.text("revision"))
