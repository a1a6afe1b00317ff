"""Pages for templates, snapshots and deleted blocks."""

from typing import NamedTuple

from starlette.responses import Response

from skillhall._internal.web.page_request import PageRequest, on_error, redirect
from skillhall._internal.web.rendering import render
from skillhall._internal.web.sessions.board_pages import block_name
from skillhall._internal.workspace import Template
from skillhall._internal.workspace.templates import ApplyMode


class TemplateRow(NamedTuple):
    """Template in the list."""

    template: Template
    types: tuple[str, ...]  # block types in order
    tokens: int


def list_templates(request: PageRequest) -> Response:
    """Show the list of templates."""
    templates, rows = request.workspace.templates, []
    for template in templates.list():
        contents = templates.find(template.id).contents
        tokens = sum(content.tokens for content in contents)
        rows.append(TemplateRow(template, tuple(row.type for row in contents), tokens))
    title, failed_id = request.translations("templates.title"), request.path_params.get("id")
    return render(request, "templates.html", title, rows=rows, failed_id=failed_id)


def show_saved_states(request: PageRequest) -> Response:
    """Show snapshots, templates and deleted blocks of a session."""
    workspace, session_id = request.workspace, request.path_params["id"]
    session = workspace.sessions.find(session_id)
    deleted = workspace.blocks.list_deleted(session_id)
    return render(
        request,
        "saved_states.html",
        session=session,
        snapshots=workspace.snapshots.list(session_id),
        templates=workspace.templates.list(),
        deleted_blocks=[(block, block_name(request, block)) for block in deleted],
        name=request.field("name"),
        description=request.field("description"),
    )


def redirect_saved_states(request: PageRequest) -> Response:
    """Redirect the former URL of the page, which may be bookmarked."""
    return redirect(_saved_states_url(request))


@on_error(show_saved_states, "snapshot")
def save_snapshot(request: PageRequest) -> Response:
    """Save a snapshot."""
    session_id, name = request.path_params["id"], request.field("name")
    snapshot = request.workspace.snapshots.save(session_id, name)
    return request.redirect(_saved_states_url(request), "snapshot_saved", snapshot.name)


@on_error(show_saved_states, "snapshots")
def restore_snapshot(request: PageRequest) -> Response:
    """Restore a snapshot."""
    session_id, snapshots = request.path_params["id"], request.workspace.snapshots
    snapshot = snapshots.find(session_id, request.path_params["snapshot"]).snapshot
    snapshots.restore(session_id, snapshot.id, request.number_field("revision"))
    return request.redirect(f"/session/{session_id}", "restored", snapshot.name)


def delete_snapshot(request: PageRequest) -> Response:
    """Delete a snapshot."""
    session_id, snapshots = request.path_params["id"], request.workspace.snapshots
    snapshot = snapshots.find(session_id, request.path_params["snapshot"]).snapshot
    snapshots.delete(session_id, snapshot.id)
    return request.redirect(_saved_states_url(request), "deleted", snapshot.name)


@on_error(show_saved_states, "template")
def save_template(request: PageRequest) -> Response:
    """Save the blocks of a session as a template, new or existing."""
    session_id, templates = request.path_params["id"], request.workspace.templates
    if request.field("template"):
        old = templates.find(request.field("template")).template
        saved = templates.edit(old.id, old.version, session=session_id)
    else:
        saved = templates.save(session_id, request.field("name"), request.field("description"))
    return request.redirect(_saved_states_url(request), "template_saved", saved.name)


@on_error(show_saved_states, "apply")
def apply_template(request: PageRequest) -> Response:
    """Add the blocks of a template to a session, or replace the session's."""
    session_id, templates = request.path_params["id"], request.workspace.templates
    is_replace = request.field("mode") == ApplyMode.REPLACE
    template = templates.find(request.field("template")).template
    mode = ApplyMode.REPLACE if is_replace else ApplyMode.APPEND
    revision = request.number_field("revision") if is_replace else None
    templates.apply(session_id, template.id, mode, revision)
    return request.redirect(f"/session/{session_id}", "template_applied", template.name)


@on_error(list_templates)
def edit_template(request: PageRequest) -> Response:
    """Change name and description of a template."""
    template_id, version = request.path_params["id"], request.number_field("version")
    name, description = request.field("name"), request.field("description")
    templates = request.workspace.templates
    templates.edit(template_id, version, name=name, description=description)
    return request.redirect("/templates", "edited", name)


@on_error(list_templates)
def delete_template(request: PageRequest) -> Response:
    """Delete a template."""
    templates = request.workspace.templates
    template = templates.find(request.path_params["id"]).template
    templates.delete(template.id, request.number_field("version"))
    return request.redirect("/templates", "deleted", template.name)


def start_session(request: PageRequest) -> Response:
    """Create a session from a template."""
    templates = request.workspace.templates
    template = templates.find(request.path_params["id"]).template
    name = request.field("name").strip() or template.name
    return redirect(f"/session/{templates.create_session(template.id, name).id}")


def _saved_states_url(request: PageRequest) -> str:
    return f"/session/{request.path_params['id']}/saved-states"
