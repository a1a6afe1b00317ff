"""Pages for templates, snapshots and deleted blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.web.rendering import redirect, render
from skillhall._internal.web.sessions.board_pages import block_name
from skillhall._internal.web.site import PageHandlers
from skillhall._internal.workspace.templates import ApplyMode
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from starlette.responses import Response

    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.workspace import Template


class TemplateRow(NamedTuple):
    """Template in the list."""

    template: Template
    types: tuple[str, ...]  # block types in order
    tokens: int


class TemplatePages(PageHandlers):
    """Handlers of the template and snapshot pages."""

    def list_templates(self, request: PageRequest, error: SkillhallError | None = None) -> Response:
        """Show the list of templates."""
        templates, rows = self._workspace.templates, []
        for template in templates.list():
            contents = templates.find(template.id).contents
            tokens = sum(content.tokens for content in contents)
            rows.append(TemplateRow(template, tuple(row.type for row in contents), tokens))
        title, failed_id = request.translations("templates.title"), request.path_params.get("id")
        return render(request, "templates.html", title, error=error, rows=rows, failed_id=failed_id)

    def show_saved_states(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> Response:
        """Show snapshots, templates and deleted blocks of a session."""
        workspace, session_id = self._workspace, request.path_params["id"]
        session = workspace.sessions.find(session_id)
        deleted = workspace.blocks.list_deleted(session_id)
        return render(
            request,
            "saved_states.html",
            error=error,
            session=session,
            snapshots=workspace.snapshots.list(session_id),
            templates=workspace.templates.list(),
            deleted_blocks=[(block, block_name(request, block)) for block in deleted],
            name=request.field("name"),
            description=request.field("description"),
            failed_form=failed_form,
        )

    def redirect_saved_states(self, request: PageRequest) -> Response:
        """Redirect the former URL of the page, which may be bookmarked."""
        return redirect(_saved_states_url(request))

    def save_snapshot(self, request: PageRequest) -> Response:
        """Save a snapshot."""
        session_id, name = request.path_params["id"], request.field("name")
        try:
            snapshot = self._workspace.snapshots.save(session_id, name)
        except SkillhallError as error:
            return self.show_saved_states(request, "snapshot", error)
        return self._site.redirect(_saved_states_url(request), "snapshot_saved", snapshot.name)

    def restore_snapshot(self, request: PageRequest) -> Response:
        """Restore a snapshot."""
        session_id, snapshots = request.path_params["id"], self._workspace.snapshots
        snapshot = snapshots.find(session_id, request.path_params["snapshot"]).snapshot
        try:
            snapshots.restore(session_id, snapshot.id, request.number_field("revision"))
        except SkillhallError as error:
            return self.show_saved_states(request, "snapshots", error)
        return self._site.redirect(f"/session/{session_id}", "restored", snapshot.name)

    def delete_snapshot(self, request: PageRequest) -> Response:
        """Delete a snapshot."""
        session_id, snapshots = request.path_params["id"], self._workspace.snapshots
        snapshot = snapshots.find(session_id, request.path_params["snapshot"]).snapshot
        snapshots.delete(session_id, snapshot.id)
        return self._site.redirect(_saved_states_url(request), "deleted", snapshot.name)

    def save_template(self, request: PageRequest) -> Response:
        """Save the blocks of a session as a new template, or replace those of a template."""
        session_id, templates = request.path_params["id"], self._workspace.templates
        try:
            if request.field("template"):
                old = templates.find(request.field("template")).template
                saved = templates.edit(old.id, old.version, session=session_id)
            else:
                saved = templates.save(
                    session_id, request.field("name"), request.field("description")
                )
        except SkillhallError as error:
            return self.show_saved_states(request, "template", error)
        return self._site.redirect(_saved_states_url(request), "template_saved", saved.name)

    def apply_template(self, request: PageRequest) -> Response:
        """Add the blocks of a template to a session, or replace the session's."""
        session_id, templates = request.path_params["id"], self._workspace.templates
        is_replace = request.field("mode") == ApplyMode.REPLACE
        try:
            template = templates.find(request.field("template")).template
            mode = ApplyMode.REPLACE if is_replace else ApplyMode.APPEND
            revision = request.number_field("revision") if is_replace else None
            templates.apply(session_id, template.id, mode, revision)
        except SkillhallError as error:
            return self.show_saved_states(request, "apply", error)
        return self._site.redirect(f"/session/{session_id}", "template_applied", template.name)

    def edit_template(self, request: PageRequest) -> Response:
        """Change name and description of a template."""
        template_id, version = request.path_params["id"], request.number_field("version")
        name, description = request.field("name"), request.field("description")
        templates = self._workspace.templates
        try:
            templates.edit(template_id, version, name=name, description=description)
        except SkillhallError as error:
            return self.list_templates(request, error)
        return self._site.redirect("/templates", "edited", name)

    def delete_template(self, request: PageRequest) -> Response:
        """Delete a template."""
        templates = self._workspace.templates
        try:
            template = templates.find(request.path_params["id"]).template
            templates.delete(template.id, request.number_field("version"))
        except SkillhallError as error:
            return self.list_templates(request, error)
        return self._site.redirect("/templates", "deleted", template.name)

    def start_session(self, request: PageRequest) -> Response:
        """Create a session from a template."""
        templates = self._workspace.templates
        template = templates.find(request.path_params["id"]).template
        name = request.field("name").strip() or template.name
        return redirect(f"/session/{templates.create_session(template.id, name).id}")


def _saved_states_url(request: PageRequest) -> str:
    return f"/session/{request.path_params['id']}/saved-states"
