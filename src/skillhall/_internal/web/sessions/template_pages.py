"""Pages for templates, snapshots and deleted blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.sessions.board_pages import block_title
from skillhall._internal.web.sessions.page_base import SessionPageBase, parse_number, session_url
from skillhall._internal.web.site import PageError, optional_page_error, page_status
from skillhall._internal.workspace.templates import ApplyMode
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.workspace import Block, Session, SessionSnapshot, Template


@dataclass(frozen=True, slots=True)
class DeletedBlock:
    """Deleted block that can be restored."""

    block: Block
    title: str


@dataclass(frozen=True, slots=True)
class SavedStatesPage(Page):
    """Snapshots, templates and deleted blocks of a session."""

    session: Session
    snapshots: Sequence[SessionSnapshot]
    templates: Sequence[Template]
    deleted_blocks: tuple[DeletedBlock, ...]
    name: str
    description: str
    failed_form: str
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """Template in the list."""

    template: Template
    types: tuple[str, ...]  # block types in order
    tokens: int
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class TemplatesPage(Page):
    """List of templates."""

    rows: tuple[TemplateRow, ...]


class TemplatePages(SessionPageBase):
    """Handlers of the template and snapshot pages."""

    def show_saved_states(self, request: PageRequest) -> ByteResponse:
        """Show snapshots, templates and deleted blocks of a session."""
        return self._render_saved_states(request)

    def redirect_saved_states(self, request: PageRequest) -> ByteResponse:
        """Redirect the former URL of the page, which may be bookmarked."""
        return redirect(_saved_states_url(request))

    def save_snapshot(self, request: PageRequest) -> ByteResponse:
        """Save a snapshot."""
        session_id, name = request.path_parts[1], request.form.text("name")
        try:
            snapshot = self._workspace().snapshots.save(session_id, name)
        except SkillhallError as error:
            return self._render_saved_states(request, "snapshot", error)
        notice = Notice("snapshot_saved", snapshot.name)
        return self._site.redirect_with_notice(_saved_states_url(request), notice)

    def restore_snapshot(self, request: PageRequest) -> ByteResponse:
        """Restore a snapshot."""
        session_id, snapshots = request.path_parts[1], self._workspace().snapshots
        snapshot = snapshots.find(session_id, request.path_parts[3]).snapshot
        try:
            snapshots.restore(session_id, snapshot.id, _form_revision(request))
        except SkillhallError as error:
            return self._render_saved_states(request, "snapshots", error)
        notice = Notice("restored", snapshot.name)
        return self._site.redirect_with_notice(session_url(session_id), notice)

    def delete_snapshot(self, request: PageRequest) -> ByteResponse:
        """Delete a snapshot."""
        session_id, snapshots = request.path_parts[1], self._workspace().snapshots
        snapshot = snapshots.find(session_id, request.path_parts[3]).snapshot
        snapshots.delete(session_id, snapshot.id)
        notice = Notice("deleted", snapshot.name)
        return self._site.redirect_with_notice(_saved_states_url(request), notice)

    def save_template(self, request: PageRequest) -> ByteResponse:
        """Save the blocks of a session as a new template, or replace those of a template."""
        form, session_id = request.form, request.path_parts[1]
        templates = self._workspace().templates
        try:
            if form.text("template"):
                old = templates.find(form.text("template")).template
                saved = templates.edit(old.id, old.version, session=session_id)
            else:
                saved = templates.save(session_id, form.text("name"), form.text("description"))
        except SkillhallError as error:
            return self._render_saved_states(request, "template", error)
        notice = Notice("template_saved", saved.name)
        return self._site.redirect_with_notice(_saved_states_url(request), notice)

    def apply_template(self, request: PageRequest) -> ByteResponse:
        """Add the blocks of a template to a session, or replace the session's."""
        form, session_id = request.form, request.path_parts[1]
        templates = self._workspace().templates
        is_replace = form.text("mode") == ApplyMode.REPLACE
        try:
            template = templates.find(form.text("template")).template
            mode = ApplyMode.REPLACE if is_replace else ApplyMode.APPEND
            revision = _form_revision(request) if is_replace else None
            templates.apply(session_id, template.id, mode, revision)
        except SkillhallError as error:
            return self._render_saved_states(request, "apply", error)
        notice = Notice("template_applied", template.name)
        return self._site.redirect_with_notice(session_url(session_id), notice)

    def list_templates(self, request: PageRequest) -> ByteResponse:
        """Show the list of templates."""
        return self._render_templates(request)

    def edit_template(self, request: PageRequest) -> ByteResponse:
        """Change name and description of a template."""
        form, template_id = request.form, request.path_parts[1]
        version = parse_number(form.text("version"))
        name, description = form.text("name"), form.text("description")
        templates = self._workspace().templates
        try:
            templates.edit(template_id, version, name=name, description=description)
        except SkillhallError as error:
            return self._render_templates(request, error)
        return self._site.redirect_with_notice("/templates", Notice("edited", name))

    def delete_template(self, request: PageRequest) -> ByteResponse:
        """Delete a template."""
        templates = self._workspace().templates
        try:
            template = templates.find(request.path_parts[1]).template
            templates.delete(template.id, parse_number(request.form.text("version")))
        except SkillhallError as error:
            return self._render_templates(request, error)
        return self._site.redirect_with_notice("/templates", Notice("deleted", template.name))

    def start_session(self, request: PageRequest) -> ByteResponse:
        """Create a session from a template."""
        templates = self._workspace().templates
        template = templates.find(request.path_parts[1]).template
        name = request.form.text("name").strip() or template.name
        return redirect(session_url(templates.create_session(template.id, name).id))

    def _render_saved_states(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> ByteResponse:
        workspace, session_id = self._workspace(), request.path_parts[1]
        session = workspace.sessions.find(session_id)
        blocks = workspace.blocks.list_deleted(session_id)
        page = SavedStatesPage(
            build_frame(request, request.translations("saved_states.title"), "sessions"),
            session=session,
            snapshots=workspace.snapshots.list(session_id),
            templates=workspace.templates.list(),
            deleted_blocks=tuple(DeletedBlock(block, block_title(block)[0]) for block in blocks),
            name=request.form.text("name"),
            description=request.form.text("description"),
            failed_form=failed_form,
            problem=optional_page_error(request, error),
        )
        return render_page("saved_states.html", page, status=page_status(error))

    def _render_templates(
        self, request: PageRequest, error: SkillhallError | None = None
    ) -> ByteResponse:
        templates, problem = self._workspace().templates, optional_page_error(request, error)
        failed_id = request.path_parts[1] if len(request.path_parts) > 1 else ""
        rows = []
        for template in templates.list():
            contents = templates.find(template.id).contents
            tokens = sum(content.tokens for content in contents)
            types = tuple(content.type for content in contents)
            row_problem = problem if template.id == failed_id else None
            rows.append(TemplateRow(template, types, tokens, row_problem))
        frame = build_frame(request, request.translations("templates.title"), "sessions")
        page = TemplatesPage(frame, tuple(rows))
        return render_page("templates.html", page, status=page_status(error))


def _saved_states_url(request: PageRequest) -> str:
    return f"{session_url(request.path_parts[1])}/saved-states"


def _form_revision(request: PageRequest) -> int:
    """Return the revision that the visitor saw; later changes must not be replaced."""
    return parse_number(request.form.text("revision"))
