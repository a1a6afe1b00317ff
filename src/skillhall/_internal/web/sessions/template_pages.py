"""The pages that keep arrangements: templates, snapshots, and blocks that were deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.sessions.board_pages import block_title
from skillhall._internal.web.sessions.page_base import (
    SessionPageBase,
    optional_page_error,
    page_status,
    parse_number,
    session_url,
)
from skillhall._internal.workspace.templates import ApplyMode
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import PageError
    from skillhall._internal.workspace import Block, Session, SessionSnapshot, Template


@dataclass(frozen=True, slots=True)
class DeletedBlock:
    """A block that was deleted."""

    block: Block
    title: str


@dataclass(frozen=True, slots=True)
class SavedStatesPage(Page):
    """What is kept of one session, and what can be brought into it."""

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
    """One template as the list shows it."""

    template: Template
    types: tuple[str, ...]  # of its blocks, in order
    tokens: int
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class TemplatesPage(Page):
    """All templates."""

    rows: tuple[TemplateRow, ...]


class TemplatePages(SessionPageBase):
    """The calls of these pages."""

    def show_saved_states(self, request: PageRequest) -> ByteResponse:
        """What is kept of a session."""
        return self._render_saved_states(request)

    def save_snapshot(self, request: PageRequest) -> ByteResponse:
        """The session as it is."""
        try:
            made = self._workspace().snapshots.save(
                request.path_parts[1], request.form.text("name")
            )
        except SkillhallError as error:
            return self._render_saved_states(request, "snapshot", error)
        return self._site.redirect_with_notice(
            _saved_states_url(request), Notice("kept", made.name)
        )

    def restore_snapshot(self, request: PageRequest) -> ByteResponse:
        """The session as it was."""
        found = (
            self._workspace().snapshots.find(request.path_parts[1], request.path_parts[3]).snapshot
        )
        try:
            self._workspace().snapshots.restore(
                request.path_parts[1], found.id, _form_revision(request)
            )
        except SkillhallError as error:
            return self._render_saved_states(request, "snapshots", error)
        return self._site.redirect_with_notice(
            session_url(request.path_parts[1]), Notice("restored", found.name)
        )

    def delete_snapshot(self, request: PageRequest) -> ByteResponse:
        """Remove a snapshot."""
        found = (
            self._workspace().snapshots.find(request.path_parts[1], request.path_parts[3]).snapshot
        )
        self._workspace().snapshots.delete(request.path_parts[1], found.id)
        return self._site.redirect_with_notice(
            _saved_states_url(request), Notice("deleted", found.name)
        )

    def save_template(self, request: PageRequest) -> ByteResponse:
        """A template out of the session's blocks, or those in place of a template's own."""
        form, templates = request.form, self._workspace().templates
        try:
            if form.text("template"):
                old = templates.find(form.text("template")).template
                made = templates.edit(old.id, old.version, session=request.path_parts[1])
            else:
                made = templates.save(
                    request.path_parts[1], form.text("name"), form.text("description")
                )
        except SkillhallError as error:
            return self._render_saved_states(request, "template", error)
        return self._site.redirect_with_notice(
            _saved_states_url(request), Notice("template_saved", made.name)
        )

    def apply_template(self, request: PageRequest) -> ByteResponse:
        """A template's blocks, after those of the session or in place of them."""
        templates, is_all = (
            self._workspace().templates,
            request.form.text("how") == ApplyMode.REPLACE,
        )
        try:
            found = templates.find(request.form.text("template")).template
            how = ApplyMode.REPLACE if is_all else ApplyMode.APPEND
            revision = _form_revision(request) if is_all else None
            templates.apply(request.path_parts[1], found.id, how, revision)
        except SkillhallError as error:
            return self._render_saved_states(request, "apply", error)
        return self._site.redirect_with_notice(
            session_url(request.path_parts[1]), Notice("applied", found.name)
        )

    def list_templates(self, request: PageRequest) -> ByteResponse:
        """All templates."""
        return self._render_templates(request)

    def edit_template(self, request: PageRequest) -> ByteResponse:
        """Another name or description."""
        form = request.form
        try:
            self._workspace().templates.edit(
                request.path_parts[1],
                parse_number(form.text("version")),
                name=form.text("name"),
                description=form.text("description"),
            )
        except SkillhallError as error:
            return self._render_templates(request, error)
        return self._site.redirect_with_notice("/templates", Notice("edited", form.text("name")))

    def delete_template(self, request: PageRequest) -> ByteResponse:
        """Remove a template."""
        try:
            found = self._workspace().templates.find(request.path_parts[1]).template
            self._workspace().templates.delete(found.id, parse_number(request.form.text("version")))
        except SkillhallError as error:
            return self._render_templates(request, error)
        return self._site.redirect_with_notice("/templates", Notice("deleted", found.name))

    def start_session(self, request: PageRequest) -> ByteResponse:
        """A new session with the template's blocks."""
        templates = self._workspace().templates
        found = templates.find(request.path_parts[1]).template
        made = templates.create_session(found.id, request.form.text("name").strip() or found.name)
        return redirect(session_url(made.id))

    def _render_saved_states(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> ByteResponse:
        desk, identity = self._workspace(), request.path_parts[1]
        session = desk.sessions.find(identity)
        page = SavedStatesPage(
            build_frame(request, request.translations("saved_states.title"), "sessions"),
            session=session,
            snapshots=desk.snapshots.list(identity),
            templates=desk.templates.list(),
            deleted_blocks=tuple(
                DeletedBlock(one, block_title(one)[0]) for one in desk.blocks.list_deleted(identity)
            ),
            name=request.form.text("name"),
            description=request.form.text("description"),
            failed_form=failed_form,
            problem=optional_page_error(request, error),
        )
        return render_page("keep.html", page, status=page_status(error))

    def _render_templates(
        self, request: PageRequest, error: SkillhallError | None = None
    ) -> ByteResponse:
        templates, problem = self._workspace().templates, optional_page_error(request, error)
        failed = request.path_parts[1] if len(request.path_parts) > 1 else ""
        rows = []
        for one in templates.list():
            contents = templates.find(one.id).contents
            tokens = sum(content.tokens for content in contents)
            kinds = tuple(content.type for content in contents)
            rows.append(TemplateRow(one, kinds, tokens, problem if one.id == failed else None))
        frame = build_frame(request, request.translations("templates.title"), "sessions")
        page = TemplatesPage(frame, tuple(rows))
        return render_page("templates.html", page, status=page_status(error))


def _saved_states_url(request: PageRequest) -> str:
    return f"{session_url(request.path_parts[1])}/keep"


def _form_revision(request: PageRequest) -> int:
    """The session as the person saw it: what came since is not replaced unseen."""
    return parse_number(request.form.text("revision"))
