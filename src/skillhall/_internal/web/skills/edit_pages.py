"""Pages that add, edit and delete user skills and undo changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from skillhall._internal.skill.edit import SkillText, edit_skill_md, parse_skill_text
from skillhall._internal.skill.frontmatter import normalize_newlines
from skillhall._internal.skill_store.draft import SkillDraft, draft_skill_md
from skillhall._internal.skill_store.version_diff import diff_texts
from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, build_frame, render_page
from skillhall._internal.web.site import PageError, form_status, optional_page_error
from skillhall.errors import Conflict, SkillhallError, StaleVersionError

if TYPE_CHECKING:
    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.skill_store.version_diff import DiffLine
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import Site

_EMPTY_TEXT = SkillText("", "", "")


@dataclass(frozen=True, slots=True)
class EditConflict:
    """Current and submitted text of a skill or block changed by someone else."""

    current_text: str
    submitted_text: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class SkillFormPage(Page):
    """Form for a skill, with checks and a preview."""

    action: str
    back_url: str
    id: str
    is_new: bool
    text: SkillText
    digest: str
    draft: SkillDraft | None
    listing: str  # system prompt with only this skill
    problem: PageError | None
    conflict: EditConflict | None


@dataclass(frozen=True, slots=True)
class SkillDeletePage(Page):
    """Confirmation before a skill is deleted."""

    id: str
    file_count: int
    is_shadowed: bool  # a user skill shadowed by a system skill
    can_undo: bool


class SkillEditPages:
    """Handlers of the pages that change skills."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._collection = site.collection

    def show_new(self, request: PageRequest) -> ByteResponse:
        """Show an empty form."""
        return self._render_new(request, "", _EMPTY_TEXT)

    def check_new(self, request: PageRequest) -> ByteResponse:
        """Show the form with checks and a preview; nothing is saved."""
        skill_id, text = request.form.text("id"), _read_form(request)
        is_blank = not (skill_id.strip() or text.name.strip())
        draft = None if is_blank else self._collection.draft(skill_id or text.name, text)
        return self._render_new(request, skill_id, text, draft)

    def add(self, request: PageRequest) -> ByteResponse:
        """Add a skill."""
        skill_id, text = request.form.text("id"), _read_form(request)
        name = skill_id.strip() or text.name
        try:
            skill = self._collection.store.add(name, *text)
        except SkillhallError as error:
            draft = self._collection.draft(name, text)
            return self._render_new(request, skill_id, text, draft, error)
        return self._site.redirect_with_notice(_skill_url(skill.id), Notice("added", skill.id))

    def show_edit(self, request: PageRequest) -> ByteResponse:
        """Show the form with the text of a skill."""
        skill_id = request.path_parts[1]
        self._collection.check_writable(skill_id)
        text = parse_skill_text(self._read_skill_file(skill_id))
        return self._render_edit(request, text, self._collection.details(skill_id).digest)

    def check_edit(self, request: PageRequest) -> ByteResponse:
        """Show the form with checks and a preview; nothing is saved."""
        text = _read_form(request)
        self._collection.check_writable(request.path_parts[1])
        return self._render_edit(request, text, request.form.text("digest"), with_draft=True)

    def edit(self, request: PageRequest) -> ByteResponse:
        """Edit a skill, unless it was changed since the form was opened."""
        skill_id, digest = request.path_parts[1], request.form.text("digest")
        text = _read_form(request)
        try:
            edited = self._collection.edit(skill_id, text, digest)
        except StaleVersionError as error:
            return self._render_conflict(request, text, error)
        except SkillhallError as error:
            self._collection.check_writable(skill_id)
            return self._render_edit(request, text, digest, error, with_draft=True)
        notice = Notice("edited", skill_id, edited.change_id)
        return self._site.redirect_with_notice(_skill_url(skill_id), notice)

    def confirm_delete(self, request: PageRequest) -> ByteResponse:
        """Ask for confirmation before a skill is deleted."""
        skill_id, is_shadowed = request.path_parts[1], request.query.get("shadowed") == "true"
        shadowed = self._collection.shadowed_bundle(skill_id) if is_shadowed else None
        if shadowed is None:
            self._collection.check_writable(skill_id)
        bundle = shadowed or self._collection.bundle(skill_id)
        page = SkillDeletePage(
            build_frame(request, request.translations("delete.title", name=skill_id), "skills"),
            skill_id,
            len(bundle.files),
            is_shadowed,
            self._collection.changes.can_undo(skill_id),
        )
        return render_page("delete.html", page)

    def delete(self, request: PageRequest) -> ByteResponse:
        """Delete a skill."""
        skill_id = request.path_parts[1]
        shadowed = request.form.text("shadowed") == "true"
        change = self._collection.delete(skill_id, shadowed=shadowed)
        return self._site.redirect_with_notice("/skills", Notice("deleted", skill_id, change))

    def undo(self, request: PageRequest) -> ByteResponse:
        """Undo a change."""
        ids = self._collection.changes.undo(request.path_parts[1]).ids
        exists = len(ids) == 1 and ids[0] in self._collection.snapshot().skills
        url = _skill_url(ids[0]) if exists else "/skills"
        return self._site.redirect_with_notice(url, Notice("undone", ", ".join(ids)))

    def _render_new(
        self,
        request: PageRequest,
        skill_id: str,
        text: SkillText,
        draft: SkillDraft | None = None,
        error: SkillhallError | None = None,
    ) -> ByteResponse:
        page = SkillFormPage(
            build_frame(request, request.translations("skill_form.title_new"), "skills"),
            action="/skills/add",
            back_url="/skills",
            id=skill_id,
            is_new=True,
            text=text,
            digest="",
            draft=draft,
            listing=self._render_listing(draft),
            problem=optional_page_error(request, error),
            conflict=None,
        )
        return render_page("skill_form.html", page, status=_page_status(error))

    def _render_edit(  # noqa: PLR0913 - contents of the form
        self,
        request: PageRequest,
        text: SkillText,
        digest: str,
        error: SkillhallError | None = None,
        *,
        with_draft: bool = False,
        conflict: EditConflict | None = None,
    ) -> ByteResponse:
        skill_id = request.path_parts[1]
        draft = self._check_edited_text(skill_id, text) if with_draft else None
        title = request.translations("skill_form.title_edit", name=skill_id)
        page = SkillFormPage(
            build_frame(request, title, "skills"),
            action=f"{_skill_url(skill_id)}/edit",
            back_url=_skill_url(skill_id),
            id=skill_id,
            is_new=False,
            text=text,
            digest=digest,
            draft=draft,
            listing=self._render_listing(draft),
            problem=optional_page_error(request, error),
            conflict=conflict,
        )
        return render_page("skill_form.html", page, status=_page_status(error))

    def _render_conflict(
        self, request: PageRequest, text: SkillText, error: StaleVersionError
    ) -> ByteResponse:
        data = self._read_skill_file(request.path_parts[1])
        current = normalize_newlines(data.decode("utf-8", "replace"))
        try:
            submitted = normalize_newlines(edit_skill_md(data, text).decode("utf-8", "replace"))
        except SkillhallError:
            submitted = text.body
        conflict = EditConflict(current, submitted, diff_texts(current, submitted))
        # The form gets the current digest: saving again overwrites the current version.
        digest = error.digest
        return self._render_edit(request, text, digest, error, with_draft=True, conflict=conflict)

    def _render_listing(self, draft: SkillDraft | None) -> str:
        skill = draft.skill if draft else None
        return self._site.agent_skills.render_prompt_for_draft(skill) if skill else ""

    def _check_edited_text(self, skill_id: str, text: SkillText) -> SkillDraft:
        return draft_skill_md(
            skill_id, lambda: edit_skill_md(self._read_skill_file(skill_id), text)
        )

    def _read_skill_file(self, skill_id: str) -> bytes:
        return self._collection.read_file(skill_id, self._collection.find(skill_id).file)


def _read_form(request: PageRequest) -> SkillText:
    form = request.form
    body = normalize_newlines(form.text("body"))
    return SkillText(form.text("name"), form.text("description"), body)


def _skill_url(skill_id: str) -> str:
    return f"/skill/{quote(skill_id, safe='')}"


def _page_status(error: SkillhallError | None) -> int:
    return 409 if isinstance(error, StaleVersionError | Conflict) else form_status(error)
