"""The pages about whole sessions: the list, names and budgets, copies, the compiled context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, frame_of, page_answer, redirect
from skillhall._internal.web.sessions.page_base import (
    DeskPages,
    number_in,
    session_address,
    status_for,
    told,
)
from skillhall._internal.workspace import Budgets, Session, Zone
from skillhall._internal.workspace.context import spend
from skillhall.errors import FieldRefused, SkillhallError, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.http.response import Answer
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Problem
    from skillhall._internal.workspace import Template
    from skillhall._internal.workspace.context import Context, Spending
    from skillhall._internal.workspace.sessions import Overview

PAGE = 50  # sessions
BUDGETS = ("permanent", "stable", "working", "total")


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session as the list shows it."""

    session: Session
    blocks: int
    total: Spending


@dataclass(frozen=True, slots=True)
class SessionsPage(Page):
    """All sessions, and the ways to begin one."""

    rows: tuple[SessionRow, ...]
    templates: tuple[Template, ...]
    following: str  # the address of the next page
    name: str
    failed: str  # which form
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class SessionPage(Page):
    """What can be said about one session."""

    session: Session
    name: str
    budgets: Mapping[str, str]
    theirs: Session | None  # what somebody else made of it meanwhile
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class SessionDeletePage(Page):
    """The question before a session is removed."""

    session: Session
    blocks: int


@dataclass(frozen=True, slots=True)
class ContextPage(Page):
    """What a model reads of a session."""

    context: Context


class SessionPages(DeskPages):
    """The calls of these pages."""

    def list_sessions(self, visit: Visit) -> Answer:
        """All sessions."""
        return self._list(visit)

    def create(self, visit: Visit) -> Answer:
        """A new session, empty or out of a template."""
        name, template = visit.form.text("name"), visit.form.text("template")
        try:
            desk = self._desk()
            made = desk.templates.start(template, name) if template else desk.sessions.create(name)
        except SkillhallError as error:
            return self._list(visit, "new", error)
        return redirect(session_address(made.id))

    def open(self, visit: Visit) -> Answer:
        """A session out of an exported one."""
        try:
            if not visit.form.files:
                raise FieldRefused("file", "no file was sent")
            filename, data = visit.form.files[0]
            made = self._desk().imports.open_session(data, filename)
        except SkillhallError as error:
            return self._list(visit, "open", error)
        return self._site.done(session_address(made.id), Notice("opened", made.name))

    def show_settings(self, visit: Visit) -> Answer:
        """The name and the budgets of a session."""
        session = self._desk().sessions.find(visit.names[1])
        return _settings(visit, session)

    def edit(self, visit: Visit) -> Answer:
        """Another name, or other budgets, unless somebody else changed them."""
        form, desk = visit.form, self._desk()
        session = desk.sessions.find(visit.names[1])
        version = number_in(form.text("version"))
        try:
            budgets = Budgets(*(_budget(form.text(one)) for one in BUDGETS))
            made = desk.sessions.edit(session.id, version, name=form.text("name"), budgets=budgets)
        except SkillhallError as error:
            return _settings(visit, session, error)
        return self._site.done(session_address(made.id), Notice("edited", made.name))

    def copy(self, visit: Visit) -> Answer:
        """Another session with the same blocks."""
        made = self._desk().sessions.duplicate(visit.names[1])
        return self._site.done(session_address(made.id), Notice("copied", made.name))

    def ask_delete(self, visit: Visit) -> Answer:
        """The question before a session is removed."""
        found = self._desk().sessions.overview(visit.names[1])
        title = visit.texts("delete.title", name=found.session.name)
        frame = frame_of(visit, title, "sessions")
        return page_answer(
            "session_delete.html", SessionDeletePage(frame, found.session, _blocks(found))
        )

    def delete(self, visit: Visit) -> Answer:
        """Remove a session."""
        desk = self._desk()
        session = desk.sessions.find(visit.names[1])
        desk.sessions.delete(session.id, number_in(visit.form.text("version")))
        return self._site.done("/sessions", Notice("deleted", session.name))

    def show_context(self, visit: Visit) -> Answer:
        """What a model reads."""
        context = self._desk().contexts.compile(visit.names[1])
        frame = frame_of(visit, visit.texts("context.title"), "sessions")
        return page_answer("context.html", ContextPage(frame, context))

    def _list(self, visit: Visit, failed: str = "", error: SkillhallError | None = None) -> Answer:
        desk = self._desk()
        after = visit.query.get("after", "")
        found = desk.sessions.list(after if after.isalnum() else "", PAGE + 1)
        rows = [_row(desk.sessions.overview(one.id)) for one in found[:PAGE]]
        rows.sort(key=lambda row: row.session.updated, reverse=True)
        page = SessionsPage(
            frame_of(visit, visit.texts("sessions.title"), "sessions"),
            rows=tuple(rows),
            templates=tuple(desk.templates.list()),
            following=f"/sessions?after={found[PAGE - 1].id}" if len(found) > PAGE else "",
            name=visit.form.text("name"),
            failed=failed,
            problem=told(visit, error),
        )
        return page_answer("sessions.html", page, status=status_for(error))


def _row(found: Overview) -> SessionRow:
    return SessionRow(found.session, _blocks(found), spend(found.session, found.sizes)[None])


def _blocks(found: Overview) -> int:
    return sum(size.blocks for size in found.sizes.values())


def _settings(visit: Visit, session: Session, error: SkillhallError | None = None) -> Answer:
    current = error.current if isinstance(error, VersionConflict) else None
    theirs = current if isinstance(current, Session) else None
    given = visit.form.fields
    budgets = {
        zone.lower(): "" if (own := session.budgets.of(zone)) is None else str(own) for zone in Zone
    }
    budgets["total"] = "" if session.budgets.total is None else str(session.budgets.total)
    page = SessionPage(
        frame_of(visit, visit.texts("session.title", name=session.name), "sessions"),
        session=theirs or session,
        name=visit.form.text("name") if "name" in given else session.name,
        budgets={one: given[one][0] if one in given else budgets[one] for one in BUDGETS},
        theirs=theirs,
        problem=told(visit, error),
    )
    return page_answer("session.html", page, status=status_for(error))


def _budget(text: str) -> int | None:
    plain = text.strip().replace(",", "").replace(" ", "")
    if not plain:
        return None
    if (number := number_in(plain)) < 0:
        raise FieldRefused("budgets", f"{text[:40]!r} is no number of tokens")
    return number
