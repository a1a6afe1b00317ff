"""Pages for the list of sessions, their settings and the compiled context."""

from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from skillhall._internal.web.page_request import PageRequest, on_error, parse_number, redirect
from skillhall._internal.web.rendering import render
from skillhall._internal.web.skills.selection_pages import read_selected_ids
from skillhall._internal.workspace import Session, SessionBudgets, Zone
from skillhall._internal.workspace.compiled_context import Spending, compute_spending
from skillhall._internal.workspace.sessions import SessionOverview
from skillhall.errors import FieldRefused, VersionConflict

PAGE_SIZE = 50  # sessions per page
BUDGET_FIELDS = ("permanent", "stable", "working", "total")


class SessionRow(NamedTuple):
    """Session in the list."""

    session: Session
    block_count: int
    total: Spending


def list_sessions(request: PageRequest) -> Response:
    """Show the list of sessions."""
    workspace = request.workspace
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
        rows=rows,
        templates=workspace.templates.list(),
        next_url=f"/sessions?after={shown[-1].id}" if has_more else "",
        name=request.field("name"),
    )


@on_error(list_sessions, "new")
def create(request: PageRequest) -> Response:
    """Create a session, empty or from a template."""
    name, template = request.field("name"), request.field("template")
    workspace = request.workspace
    if template:
        session = workspace.templates.create_session(template, name)
    else:
        session = workspace.sessions.create(name)
    return redirect(f"/session/{session.id}")


def show_choice(request: PageRequest) -> Response:
    """Ask to which session skills are added."""
    skill_ids = read_selected_ids(request.query_params.getlist("skill"))
    names = [request.collection.find(one).name for one in skill_ids]
    sessions = request.workspace.sessions.list("", PAGE_SIZE)
    if len(names) == 1:
        title = request.translations("choose_session.title", name=names[0])
    else:
        title = request.translations("choose_session.several", count=len(names))
    return render(
        request,
        "choose_session.html",
        title,
        skills=dict(zip(skill_ids, names, strict=True)),
        sessions=sorted(sessions, key=lambda session: session.updated, reverse=True),
    )


def choose(request: PageRequest) -> Response:
    """Continue with the import of the skills into the chosen session, or into a new one."""
    skill_ids = read_selected_ids(request.fields.getlist("skill"))
    session_id, name = request.field("session"), request.collection.find(skill_ids[0]).name
    if not session_id:
        session_id = request.workspace.sessions.create(name).id
    # The status 307 repeats the POST, with its fields `skill`.
    return RedirectResponse(f"/session/{quote(session_id, safe='')}/import/skills", 307)


@on_error(list_sessions, "open")
def import_session(request: PageRequest) -> Response:
    """Create a session from an exported one."""
    if not request.files:
        raise FieldRefused("file", "no file was uploaded")
    filename, data = request.files[0]
    session = request.workspace.importer.create_session(data, filename)
    return request.redirect(f"/session/{session.id}", "opened", session.name)


def show_settings(request: PageRequest) -> Response:
    """Show the settings of a session."""
    session, error = request.workspace.sessions.find(request.path_params["id"]), request.error
    current = error.current if isinstance(error, VersionConflict) else None
    current_session = current if isinstance(current, Session) else None
    fields, budgets = request.fields, session.budgets
    values = {zone.lower(): budgets.for_zone(zone) for zone in Zone} | {"total": budgets.total}
    texts = {key: "" if value is None else str(value) for key, value in values.items()}
    return render(
        request,
        "session.html",
        request.translations("session.title", name=session.name),
        session=current_session or session,
        name=fields.get("name", session.name),
        budgets={key: fields.get(key, texts[key]) for key in BUDGET_FIELDS},
        current_session=current_session,  # after a conflict with another change
    )


@on_error(show_settings)
def edit(request: PageRequest) -> Response:
    """Change name and budgets, unless they have been changed since the form was opened."""
    version, name = request.number_field("version"), request.field("name")
    budgets = SessionBudgets(*(_parse_budget(request.field(field)) for field in BUDGET_FIELDS))
    sessions, session_id = request.workspace.sessions, request.path_params["id"]
    edited = sessions.edit(session_id, version, name=name, budgets=budgets)
    return request.redirect(f"/session/{edited.id}", "edited", edited.name)


def duplicate(request: PageRequest) -> Response:
    """Copy a session."""
    copy = request.workspace.sessions.duplicate(request.path_params["id"])
    return request.redirect(f"/session/{copy.id}", "copied", copy.name)


def confirm_delete(request: PageRequest) -> Response:
    """Ask for confirmation before a session is deleted."""
    overview = request.workspace.sessions.overview(request.path_params["id"])
    session, count = overview.session, _count_blocks(overview)
    title = request.translations("delete.title", name=session.name)
    return render(request, "session_delete.html", title, session=session, block_count=count)


def delete(request: PageRequest) -> Response:
    """Delete a session."""
    workspace = request.workspace
    session = workspace.sessions.find(request.path_params["id"])
    workspace.sessions.delete(session.id, request.number_field("version"))
    return request.redirect("/sessions", "deleted", session.name)


def show_context(request: PageRequest) -> Response:
    """Show the compiled context."""
    context = request.workspace.contexts.compile(request.path_params["id"])
    return render(request, "context.html", context=context)


def _count_blocks(overview: SessionOverview) -> int:
    return sum(size.blocks for size in overview.zone_sizes.values())


def _parse_budget(text: str) -> int | None:
    digits = text.strip().replace(",", "").replace(" ", "")
    if not digits:
        return None
    if (number := parse_number(digits)) < 0:
        raise FieldRefused("budgets", f"{text[:40]!r} is not a number of tokens")
    return number
