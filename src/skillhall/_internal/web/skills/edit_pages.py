"""Pages that add, edit and delete user skills and undo changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from skillhall._internal.skill.frontmatter_locator import normalize_newlines
from skillhall._internal.skill.lossless_editor import SkillText, edit_skill_md, parse_skill_text
from skillhall._internal.skill_store.draft import SkillDraft, draft_skill_md
from skillhall._internal.skill_store.version_diff import diff_texts
from skillhall._internal.web.rendering import form_status, render
from skillhall._internal.web.site import PageHandlers
from skillhall.errors import Conflict, SkillhallError, StaleVersionError

if TYPE_CHECKING:
    from starlette.responses import Response

    from skillhall._internal.skill_store.version_diff import DiffLine
    from skillhall._internal.web.page_request import PageRequest

_EMPTY_TEXT = SkillText("", "", "")


class EditConflict(NamedTuple):
    """Current and submitted text of a skill or block changed by someone else."""

    current_text: str
    submitted_text: str
    lines: tuple[DiffLine, ...]


class SkillEditPages(PageHandlers):
    """Handlers of the pages that change skills."""

    def show_new(self, request: PageRequest) -> Response:
        """Show an empty form."""
        return self._render_form(request, _EMPTY_TEXT)

    def check_new(self, request: PageRequest) -> Response:
        """Show the form with checks and a preview; nothing is saved."""
        skill_id, text = request.field("id"), _read_form(request)
        is_blank = not (skill_id.strip() or text.name.strip())
        draft = None if is_blank else self._collection.draft(skill_id or text.name, text)
        return self._render_form(request, text, draft=draft)

    def add(self, request: PageRequest) -> Response:
        """Add a skill."""
        text = _read_form(request)
        name = request.field("id").strip() or text.name
        try:
            skill = self._collection.store.add(name, *text)
        except SkillhallError as error:
            draft = self._collection.draft(name, text)
            return self._render_form(request, text, draft=draft, error=error)
        return self._site.redirect(_skill_url(skill.id), "added", skill.id)

    def show_edit(self, request: PageRequest) -> Response:
        """Show the form with the text of a skill."""
        skill_id = request.path_params["id"]
        self._collection.check_writable(skill_id)
        text = parse_skill_text(self._read_skill_file(skill_id))
        return self._render_form(request, text, self._collection.details(skill_id).digest)

    def check_edit(self, request: PageRequest) -> Response:
        """Show the form with checks and a preview; nothing is saved."""
        skill_id, text = request.path_params["id"], _read_form(request)
        self._collection.check_writable(skill_id)
        draft = self._draft_edit(skill_id, text)
        return self._render_form(request, text, request.field("digest"), draft=draft)

    def edit(self, request: PageRequest) -> Response:
        """Edit a skill, unless it was changed since the form was opened."""
        skill_id, digest = request.path_params["id"], request.field("digest")
        text, conflict = _read_form(request), None
        try:
            edited = self._collection.edit(skill_id, text, digest)
        except SkillhallError as error:
            if isinstance(error, StaleVersionError):
                conflict = self._compare_versions(skill_id, text)
                # The form gets the current digest: saving again overwrites the current version.
                digest = error.digest
            else:
                self._collection.check_writable(skill_id)
            draft = self._draft_edit(skill_id, text)
            return self._render_form(
                request, text, digest, draft=draft, conflict=conflict, error=error
            )
        return self._site.redirect(_skill_url(skill_id), "edited", skill_id, edited.change_id)

    def confirm_delete(self, request: PageRequest) -> Response:
        """Ask for confirmation before a skill is deleted."""
        skill_id = request.path_params["id"]
        is_shadowed = request.query_params.get("shadowed") == "true"
        shadowed = self._collection.shadowed_bundle(skill_id) if is_shadowed else None
        if shadowed is None:
            self._collection.check_writable(skill_id)
        return render(
            request,
            "delete.html",
            request.translations("delete.title", name=skill_id),
            id=skill_id,
            file_count=len((shadowed or self._collection.bundle(skill_id)).files),
            is_shadowed=is_shadowed,
            can_undo=self._collection.changes.can_undo(skill_id),
        )

    def delete(self, request: PageRequest) -> Response:
        """Delete a skill."""
        skill_id = request.path_params["id"]
        is_shadowed = request.field("shadowed") == "true"
        change = self._collection.delete(skill_id, shadowed=is_shadowed)
        return self._site.redirect("/skills", "deleted", skill_id, change)

    def undo(self, request: PageRequest) -> Response:
        """Undo a change."""
        ids = [*self._collection.changes.undo(request.path_params["id"]).entries]
        exists = len(ids) == 1 and ids[0] in self._collection.snapshot().skills
        url = _skill_url(ids[0]) if exists else "/skills"
        return self._site.redirect(url, "undone", ", ".join(ids))

    def _render_form(  # noqa: PLR0913 - contents of the form
        self,
        request: PageRequest,
        text: SkillText,
        digest: str = "",
        *,
        draft: SkillDraft | None = None,
        conflict: EditConflict | None = None,
        error: SkillhallError | None = None,
    ) -> Response:
        skill_id, translations = request.path_params.get("id"), request.translations
        if skill_id is None:
            title = translations("skill_form.title_new")
            action, back_url = "/skills/add", "/skills"
        else:
            title = translations("skill_form.title_edit", name=skill_id)
            action, back_url = f"{_skill_url(skill_id)}/edit", _skill_url(skill_id)
        is_conflict = isinstance(error, StaleVersionError | Conflict)
        skill = draft.skill if draft else None
        return render(
            request,
            "skill_form.html",
            title,
            error=error,
            status=409 if is_conflict else form_status(error),
            action=action,
            back_url=back_url,
            id=request.field("id") if skill_id is None else skill_id,
            is_new=skill_id is None,
            text=text,
            digest=digest,
            draft=draft,
            listing=self._site.agent_skills.render_prompt_for_draft(skill) if skill else "",
            conflict=conflict,
        )

    def _compare_versions(self, skill_id: str, text: SkillText) -> EditConflict:
        data = self._read_skill_file(skill_id)
        current = normalize_newlines(data.decode("utf-8", "replace"))
        try:
            submitted = normalize_newlines(edit_skill_md(data, text).decode("utf-8", "replace"))
        except SkillhallError:
            submitted = text.body
        return EditConflict(current, submitted, diff_texts(current, submitted))

    def _draft_edit(self, skill_id: str, text: SkillText) -> SkillDraft:
        return draft_skill_md(
            skill_id, lambda: edit_skill_md(self._read_skill_file(skill_id), text)
        )

    def _read_skill_file(self, skill_id: str) -> bytes:
        return self._collection.read_file(skill_id, self._collection.find(skill_id).file)


def _read_form(request: PageRequest) -> SkillText:
    body = normalize_newlines(request.field("body"))
    return SkillText(request.field("name"), request.field("description"), body)


def _skill_url(skill_id: str) -> str:
    return f"/skill/{quote(skill_id, safe='')}"
