"""Pages for the list of sessions, their settings and the compiled context."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.web.page_request import parse_number
from skillhall._internal.web.rendering import redirect, render
from skillhall._internal.web.site import PageHandlers
from skillhall._internal.workspace import Session, SessionBudgets, Zone
from skillhall._internal.workspace.context import compute_spending
from skillhall.errors import FieldRefused, SkillhallError, VersionConflict

if TYPE_CHECKING:
    from starlette.responses import Response

    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.workspace.context import Spending
    from skillhall._internal.workspace.sessions import SessionOverview

PAGE_SIZE = 50  # sessions per page
BUDGET_FIELDS = ("permanent", "stable", "working", "total")


class SessionRow(NamedTuple):
    """Session in the list."""

    session: Session
    block_count: int
    total: Spending


class SessionPages(PageHandlers):
    """Handlers of the session list, settings and context pages."""

    def list_sessions(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> Response:
        """Show the list of sessions."""
        workspace = self._workspace
        after = request.query_params.get("after", "")
        # One more than a page tells whether there is a next page.
        sessions = workspace.sessions.list(after if after.isalnum() else "", PAGE_SIZE + 1)
        shown, has_more = sessions[:PAGE_SIZE], len(sessions) > PAGE_SIZE
        rows = []
        for session in sorted(shown, key=lambda session: session.updated, reverse=True):
            overview = workspace.sessions.overview(session.id)
            total = compute_spending(overview.session, overview.zone_sizes)[None]
            rows.append(SessionRow(overview.session, _count_blocks(overview), total))
        return render(
            request,
            "sessions.html",
            error=error,
            rows=rows,
            templates=workspace.templates.list(),
            next_url=f"/sessions?after={shown[-1].id}" if has_more else "",
            name=request.field("name"),
            failed_form=failed_form,
        )

    def create(self, request: PageRequest) -> Response:
        """Create a session, empty or from a template."""
        name, template = request.field("name"), request.field("template")
        try:
            workspace = self._workspace
            if template:
                session = workspace.templates.create_session(template, name)
            else:
                session = workspace.sessions.create(name)
        except SkillhallError as error:
            return self.list_sessions(request, "new", error)
        return redirect(f"/session/{session.id}")

    def import_session(self, request: PageRequest) -> Response:
        """Create a session from an exported one."""
        try:
            if not request.files:
                raise FieldRefused("file", "no file was uploaded")
            filename, data = request.files[0]
            session = self._workspace.importer.create_session(data, filename)
        except SkillhallError as error:
            return self.list_sessions(request, "open", error)
        return self._site.redirect(f"/session/{session.id}", "opened", session.name)

    def show_settings(self, request: PageRequest) -> Response:
        """Show the settings of a session."""
        session = self._workspace.sessions.find(request.path_params["id"])
        return _render_settings(request, session)

    def edit(self, request: PageRequest) -> Response:
        """Change name and budgets, unless they were changed since the form was opened."""
        sessions = self._workspace.sessions
        session = sessions.find(request.path_params["id"])
        version, name = request.number_field("version"), request.field("name")
        try:
            budgets = SessionBudgets(
                *(_parse_budget(request.field(field)) for field in BUDGET_FIELDS)
            )
            edited = sessions.edit(session.id, version, name=name, budgets=budgets)
        except SkillhallError as error:
            return _render_settings(request, session, error)
        return self._site.redirect(f"/session/{edited.id}", "edited", edited.name)

    def duplicate(self, request: PageRequest) -> Response:
        """Copy a session."""
        copy = self._workspace.sessions.duplicate(request.path_params["id"])
        return self._site.redirect(f"/session/{copy.id}", "copied", copy.name)

    def confirm_delete(self, request: PageRequest) -> Response:
        """Ask for confirmation before a session is deleted."""
        overview = self._workspace.sessions.overview(request.path_params["id"])
        session, count = overview.session, _count_blocks(overview)
        title = request.translations("delete.title", name=session.name)
        return render(request, "session_delete.html", title, session=session, block_count=count)

    def delete(self, request: PageRequest) -> Response:
        """Delete a session."""
        workspace = self._workspace
        session = workspace.sessions.find(request.path_params["id"])
        workspace.sessions.delete(session.id, request.number_field("version"))
        return self._site.redirect("/sessions", "deleted", session.name)

    def show_context(self, request: PageRequest) -> Response:
        """Show the compiled context."""
        context = self._workspace.contexts.compile(request.path_params["id"])
        return render(request, "context.html", context=context)


def _count_blocks(overview: SessionOverview) -> int:
    return sum(size.blocks for size in overview.zone_sizes.values())


def _render_settings(
    request: PageRequest, session: Session, error: SkillhallError | None = None
) -> Response:
    current = error.current if isinstance(error, VersionConflict) else None
    current_session = current if isinstance(current, Session) else None
    fields, budgets = request.fields, session.budgets
    values = {zone.lower(): budgets.for_zone(zone) for zone in Zone} | {"total": budgets.total}
    texts = {key: "" if value is None else str(value) for key, value in values.items()}
    return render(
        request,
        "session.html",
        request.translations("session.title", name=session.name),
        error=error,
        session=current_session or session,
        name=fields.get("name", session.name),
        budgets={key: fields.get(key, texts[key]) for key in BUDGET_FIELDS},
        current_session=current_session,  # after a conflict with another change
    )


def _parse_budget(text: str) -> int | None:
    digits = text.strip().replace(",", "").replace(" ", "")
    if not digits:
        return None
    if (number := parse_number(digits)) < 0:
        raise FieldRefused("budgets", f"{text[:40]!r} is not a number of tokens")
    return number
