"""The pages about whole sessions: the list, names and budgets, copies, the compiled context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.sessions.page_base import (
    SessionPageBase,
    optional_page_error,
    page_status,
    parse_number,
    session_url,
)
from skillhall._internal.workspace import Session, SessionBudgets, Zone
from skillhall._internal.workspace.context import compute_spending
from skillhall.errors import FieldRefused, SkillhallError, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import PageError
    from skillhall._internal.workspace import Template
    from skillhall._internal.workspace.context import Context, Spending
    from skillhall._internal.workspace.sessions import SessionOverview

PAGE_SIZE = 50  # sessions
BUDGET_FIELDS = ("permanent", "stable", "working", "total")


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session as the list shows it."""

    session: Session
    block_count: int
    total: Spending


@dataclass(frozen=True, slots=True)
class SessionsPage(Page):
    """All sessions, and the ways to begin one."""

    rows: tuple[SessionRow, ...]
    templates: tuple[Template, ...]
    next_url: str  # the address of the next page
    name: str
    failed_form: str  # which form
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class SessionSettingsPage(Page):
    """What can be said about one session."""

    session: Session
    name: str
    budgets: Mapping[str, str]
    current_session: Session | None  # what somebody else made of it meanwhile
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class SessionDeletePage(Page):
    """The question before a session is removed."""

    session: Session
    block_count: int


@dataclass(frozen=True, slots=True)
class ContextPage(Page):
    """What a model reads of a session."""

    context: Context


class SessionPages(SessionPageBase):
    """The calls of these pages."""

    def list_sessions(self, request: PageRequest) -> ByteResponse:
        """All sessions."""
        return self._render_list(request)

    def create(self, request: PageRequest) -> ByteResponse:
        """A new session, empty or out of a template."""
        name, template = request.form.text("name"), request.form.text("template")
        try:
            desk = self._workspace()
            made = (
                desk.templates.create_session(template, name)
                if template
                else desk.sessions.create(name)
            )
        except SkillhallError as error:
            return self._render_list(request, "new", error)
        return redirect(session_url(made.id))

    def import_session(self, request: PageRequest) -> ByteResponse:
        """A session out of an exported one."""
        try:
            if not request.form.files:
                raise FieldRefused("file", "no file was sent")
            filename, data = request.form.files[0]
            made = self._workspace().importer.create_session(data, filename)
        except SkillhallError as error:
            return self._render_list(request, "open", error)
        return self._site.redirect_with_notice(session_url(made.id), Notice("opened", made.name))

    def show_settings(self, request: PageRequest) -> ByteResponse:
        """The name and the budgets of a session."""
        session = self._workspace().sessions.find(request.path_parts[1])
        return _render_settings(request, session)

    def edit(self, request: PageRequest) -> ByteResponse:
        """Another name, or other budgets, unless somebody else changed them."""
        form, desk = request.form, self._workspace()
        session = desk.sessions.find(request.path_parts[1])
        version = parse_number(form.text("version"))
        try:
            budgets = SessionBudgets(*(_parse_budget(form.text(one)) for one in BUDGET_FIELDS))
            made = desk.sessions.edit(session.id, version, name=form.text("name"), budgets=budgets)
        except SkillhallError as error:
            return _render_settings(request, session, error)
        return self._site.redirect_with_notice(session_url(made.id), Notice("edited", made.name))

    def duplicate(self, request: PageRequest) -> ByteResponse:
        """Another session with the same blocks."""
        made = self._workspace().sessions.duplicate(request.path_parts[1])
        return self._site.redirect_with_notice(session_url(made.id), Notice("copied", made.name))

    def confirm_delete(self, request: PageRequest) -> ByteResponse:
        """The question before a session is removed."""
        found = self._workspace().sessions.overview(request.path_parts[1])
        title = request.translations("delete.title", name=found.session.name)
        frame = build_frame(request, title, "sessions")
        return render_page(
            "session_delete.html", SessionDeletePage(frame, found.session, _count_blocks(found))
        )

    def delete(self, request: PageRequest) -> ByteResponse:
        """Remove a session."""
        desk = self._workspace()
        session = desk.sessions.find(request.path_parts[1])
        desk.sessions.delete(session.id, parse_number(request.form.text("version")))
        return self._site.redirect_with_notice("/sessions", Notice("deleted", session.name))

    def show_context(self, request: PageRequest) -> ByteResponse:
        """What a model reads."""
        context = self._workspace().contexts.compile(request.path_parts[1])
        frame = build_frame(request, request.translations("context.title"), "sessions")
        return render_page("context.html", ContextPage(frame, context))

    def _render_list(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> ByteResponse:
        desk = self._workspace()
        after = request.query.get("after", "")
        found = desk.sessions.list(after if after.isalnum() else "", PAGE_SIZE + 1)
        rows = [_build_row(desk.sessions.overview(one.id)) for one in found[:PAGE_SIZE]]
        rows.sort(key=lambda row: row.session.updated, reverse=True)
        page = SessionsPage(
            build_frame(request, request.translations("sessions.title"), "sessions"),
            rows=tuple(rows),
            templates=tuple(desk.templates.list()),
            next_url=f"/sessions?after={found[PAGE_SIZE - 1].id}" if len(found) > PAGE_SIZE else "",
            name=request.form.text("name"),
            failed_form=failed_form,
            problem=optional_page_error(request, error),
        )
        return render_page("sessions.html", page, status=page_status(error))


def _build_row(overview: SessionOverview) -> SessionRow:
    return SessionRow(
        overview.session,
        _count_blocks(overview),
        compute_spending(overview.session, overview.zone_sizes)[None],
    )


def _count_blocks(overview: SessionOverview) -> int:
    return sum(size.blocks for size in overview.zone_sizes.values())


def _render_settings(
    request: PageRequest, session: Session, error: SkillhallError | None = None
) -> ByteResponse:
    current = error.current if isinstance(error, VersionConflict) else None
    theirs = current if isinstance(current, Session) else None
    given = request.form.fields
    budgets = {
        zone.lower(): "" if (own := session.budgets.for_zone(zone)) is None else str(own)
        for zone in Zone
    }
    budgets["total"] = "" if session.budgets.total is None else str(session.budgets.total)
    page = SessionSettingsPage(
        build_frame(request, request.translations("session.title", name=session.name), "sessions"),
        session=theirs or session,
        name=request.form.text("name") if "name" in given else session.name,
        budgets={one: given[one][0] if one in given else budgets[one] for one in BUDGET_FIELDS},
        current_session=theirs,
        problem=optional_page_error(request, error),
    )
    return render_page("session.html", page, status=page_status(error))


def _parse_budget(text: str) -> int | None:
    plain = text.strip().replace(",", "").replace(" ", "")
    if not plain:
        return None
    if (number := parse_number(plain)) < 0:
        raise FieldRefused("budgets", f"{text[:40]!r} is no number of tokens")
    return number
