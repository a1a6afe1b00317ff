"""Pages for the list of sessions, their settings and the compiled context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.sessions.page_base import SessionPageBase, parse_number, session_url
from skillhall._internal.web.site import PageError, optional_page_error, page_status
from skillhall._internal.workspace import Session, SessionBudgets, Zone
from skillhall._internal.workspace.context import compute_spending
from skillhall.errors import FieldRefused, SkillhallError, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.workspace import Template
    from skillhall._internal.workspace.context import Context, Spending
    from skillhall._internal.workspace.sessions import SessionOverview

PAGE_SIZE = 50  # sessions per page
BUDGET_FIELDS = ("permanent", "stable", "working", "total")


@dataclass(frozen=True, slots=True)
class SessionRow:
    """Session in the list."""

    session: Session
    block_count: int
    total: Spending


@dataclass(frozen=True, slots=True)
class SessionsPage(Page):
    """List of sessions, and forms to create or open one."""

    rows: tuple[SessionRow, ...]
    templates: tuple[Template, ...]
    next_url: str  # "" on the last page
    name: str
    failed_form: str  # "new" or "open"; "" if none failed
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class SessionSettingsPage(Page):
    """Name and budgets of a session."""

    session: Session
    name: str
    budgets: Mapping[str, str]
    current_session: Session | None  # after a conflict with another change
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class SessionDeletePage(Page):
    """Confirmation before a session is deleted."""

    session: Session
    block_count: int


@dataclass(frozen=True, slots=True)
class ContextPage(Page):
    """Compiled context of a session."""

    context: Context


class SessionPages(SessionPageBase):
    """Handlers of the session list, settings and context pages."""

    def list_sessions(self, request: PageRequest) -> ByteResponse:
        """Show the list of sessions."""
        return self._render_list(request)

    def create(self, request: PageRequest) -> ByteResponse:
        """Create a session, empty or from a template."""
        name, template = request.form.text("name"), request.form.text("template")
        try:
            workspace = self._workspace()
            if template:
                session = workspace.templates.create_session(template, name)
            else:
                session = workspace.sessions.create(name)
        except SkillhallError as error:
            return self._render_list(request, "new", error)
        return redirect(session_url(session.id))

    def import_session(self, request: PageRequest) -> ByteResponse:
        """Create a session from an exported one."""
        try:
            if not request.form.files:
                raise FieldRefused("file", "no file was uploaded")
            filename, data = request.form.files[0]
            session = self._workspace().importer.create_session(data, filename)
        except SkillhallError as error:
            return self._render_list(request, "open", error)
        notice = Notice("opened", session.name)
        return self._site.redirect_with_notice(session_url(session.id), notice)

    def show_settings(self, request: PageRequest) -> ByteResponse:
        """Show the settings of a session."""
        session = self._workspace().sessions.find(request.path_parts[1])
        return _render_settings(request, session)

    def edit(self, request: PageRequest) -> ByteResponse:
        """Change name and budgets, unless they were changed since the form was opened."""
        form, sessions = request.form, self._workspace().sessions
        session = sessions.find(request.path_parts[1])
        version, name = parse_number(form.text("version")), form.text("name")
        try:
            budgets = SessionBudgets(*(_parse_budget(form.text(field)) for field in BUDGET_FIELDS))
            edited = sessions.edit(session.id, version, name=name, budgets=budgets)
        except SkillhallError as error:
            return _render_settings(request, session, error)
        notice = Notice("edited", edited.name)
        return self._site.redirect_with_notice(session_url(edited.id), notice)

    def duplicate(self, request: PageRequest) -> ByteResponse:
        """Copy a session."""
        copy = self._workspace().sessions.duplicate(request.path_parts[1])
        return self._site.redirect_with_notice(session_url(copy.id), Notice("copied", copy.name))

    def confirm_delete(self, request: PageRequest) -> ByteResponse:
        """Ask for confirmation before a session is deleted."""
        overview = self._workspace().sessions.overview(request.path_parts[1])
        title = request.translations("delete.title", name=overview.session.name)
        frame = build_frame(request, title, "sessions")
        page = SessionDeletePage(frame, overview.session, _count_blocks(overview))
        return render_page("session_delete.html", page)

    def delete(self, request: PageRequest) -> ByteResponse:
        """Delete a session."""
        workspace = self._workspace()
        session = workspace.sessions.find(request.path_parts[1])
        workspace.sessions.delete(session.id, parse_number(request.form.text("version")))
        return self._site.redirect_with_notice("/sessions", Notice("deleted", session.name))

    def show_context(self, request: PageRequest) -> ByteResponse:
        """Show the compiled context."""
        context = self._workspace().contexts.compile(request.path_parts[1])
        frame = build_frame(request, request.translations("context.title"), "sessions")
        return render_page("context.html", ContextPage(frame, context))

    def _render_list(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> ByteResponse:
        workspace = self._workspace()
        after = request.query.get("after", "")
        # One more than a page tells whether there is a next page.
        sessions = workspace.sessions.list(after if after.isalnum() else "", PAGE_SIZE + 1)
        shown, has_more = sessions[:PAGE_SIZE], len(sessions) > PAGE_SIZE
        rows = [_build_row(workspace.sessions.overview(session.id)) for session in shown]
        rows.sort(key=lambda row: row.session.updated, reverse=True)
        page = SessionsPage(
            build_frame(request, request.translations("sessions.title"), "sessions"),
            rows=tuple(rows),
            templates=tuple(workspace.templates.list()),
            next_url=f"/sessions?after={shown[-1].id}" if has_more else "",
            name=request.form.text("name"),
            failed_form=failed_form,
            problem=optional_page_error(request, error),
        )
        return render_page("sessions.html", page, status=page_status(error))


def _build_row(overview: SessionOverview) -> SessionRow:
    total = compute_spending(overview.session, overview.zone_sizes)[None]
    return SessionRow(overview.session, _count_blocks(overview), total)


def _count_blocks(overview: SessionOverview) -> int:
    return sum(size.blocks for size in overview.zone_sizes.values())


def _render_settings(
    request: PageRequest, session: Session, error: SkillhallError | None = None
) -> ByteResponse:
    current = error.current if isinstance(error, VersionConflict) else None
    current_session = current if isinstance(current, Session) else None
    fields, budgets = request.form.fields, session.budgets
    values = {zone.lower(): budgets.for_zone(zone) for zone in Zone} | {"total": budgets.total}
    texts = {key: "" if value is None else str(value) for key, value in values.items()}
    page = SessionSettingsPage(
        build_frame(request, request.translations("session.title", name=session.name), "sessions"),
        session=current_session or session,
        name=request.form.text("name") if "name" in fields else session.name,
        budgets={key: fields[key][0] if key in fields else texts[key] for key in BUDGET_FIELDS},
        current_session=current_session,
        problem=optional_page_error(request, error),
    )
    return render_page("session.html", page, status=page_status(error))


def _parse_budget(text: str) -> int | None:
    digits = text.strip().replace(",", "").replace(" ", "")
    if not digits:
        return None
    if (number := parse_number(digits)) < 0:
        raise FieldRefused("budgets", f"{text[:40]!r} is not a number of tokens")
    return number
