"""The pages that change user skills: add, edit, delete, take back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from skillhall._internal.http.errors import error_status
from skillhall._internal.skill.edit import (
    SkillText,
    edit_skill_md,
    normalize_newlines,
    parse_skill_text,
)
from skillhall._internal.skill_store.draft import SkillDraft, draft_skill_md
from skillhall._internal.skill_store.version_diff import diff_texts
from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, build_frame, render_page
from skillhall._internal.web.site import PageError, build_page_error
from skillhall.errors import Conflict, SkillhallError, StaleVersionError

if TYPE_CHECKING:
    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.skill_store.version_diff import DiffLine
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import Site

_EMPTY_TEXT = SkillText("", "", "")


@dataclass(frozen=True, slots=True)
class EditConflict:
    """Two versions of one skill: what stands there, and what somebody wrote meanwhile."""

    current_text: str
    submitted_text: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class SkillFormPage(Page):
    """The form of a skill, and what would come of it."""

    action: str
    back_url: str
    id: str
    is_new: bool
    text: SkillText
    digest: str
    draft: SkillDraft | None
    listing: str  # the system prompt with this skill alone
    problem: PageError | None
    conflict: EditConflict | None


@dataclass(frozen=True, slots=True)
class SkillDeletePage(Page):
    """The question before a skill is removed."""

    id: str
    file_count: int
    is_shadowed: bool  # a user skill that a system skill shadows
    can_undo: bool


class SkillEditPages:
    """The calls of these pages."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._collection = site.collection

    def show_new(self, request: PageRequest) -> ByteResponse:
        """An empty form."""
        return self._render_new(request, "", _EMPTY_TEXT)

    def check_new(self, request: PageRequest) -> ByteResponse:
        """The form with what would come of it; nothing is written."""
        identity, text = request.form.text("id"), _read_form(request)
        is_blank = not (identity.strip() or text.name.strip())
        made = None if is_blank else self._check_new_text(identity or text.name, text)
        return self._render_new(request, identity, text, made)

    def add(self, request: PageRequest) -> ByteResponse:
        """Write a new skill."""
        identity, text = request.form.text("id"), _read_form(request)
        wanted = identity.strip() or text.name
        try:
            made = self._collection.store.add(wanted, *text)
        except SkillhallError as error:
            return self._render_new(
                request, identity, text, self._check_new_text(wanted, text), error
            )
        return self._site.redirect_with_notice(_skill_url(made.id), Notice("added", made.id))

    def show_edit(self, request: PageRequest) -> ByteResponse:
        """The form with a skill's own words."""
        identity = request.path_parts[1]
        self._collection.check_writable(identity)
        details = self._collection.details(identity)
        return self._render_edit(
            request, parse_skill_text(self._read_skill_file(identity)), details.digest
        )

    def check_edit(self, request: PageRequest) -> ByteResponse:
        """The form with what would come of it; nothing is written."""
        identity, text = request.path_parts[1], _read_form(request)
        self._collection.check_writable(identity)
        return self._render_edit(request, text, request.form.text("digest"), with_draft=True)

    def edit(self, request: PageRequest) -> ByteResponse:
        """Change a skill, unless somebody else did since the form was opened."""
        identity, text, digest = (
            request.path_parts[1],
            _read_form(request),
            request.form.text("digest"),
        )
        try:
            changed = self._collection.edit(identity, text, digest)
        except StaleVersionError as error:
            return self._render_conflict(request, text, error)
        except SkillhallError as error:
            self._collection.check_writable(identity)
            return self._render_edit(request, text, digest, error, with_draft=True)
        return self._site.redirect_with_notice(
            _skill_url(identity), Notice("edited", identity, changed.change_id)
        )

    def confirm_delete(self, request: PageRequest) -> ByteResponse:
        """The question before a skill is removed."""
        identity, is_shadowed = request.path_parts[1], request.query.get("shadowed") == "true"
        own = self._collection.shadowed_bundle(identity) if is_shadowed else None
        if own is None:
            self._collection.check_writable(identity)
        bundle = own or self._collection.bundle(identity)
        page = SkillDeletePage(
            build_frame(request, request.translations("delete.title", name=identity), "skills"),
            identity,
            len(bundle.files),
            is_shadowed,
            self._collection.changes.can_undo(identity),
        )
        return render_page("delete.html", page)

    def delete(self, request: PageRequest) -> ByteResponse:
        """Remove a skill."""
        identity = request.path_parts[1]
        shadowed = request.form.text("shadowed") == "true"
        change = self._collection.delete(identity, shadowed=shadowed)
        return self._site.redirect_with_notice("/skills", Notice("deleted", identity, change))

    def undo(self, request: PageRequest) -> ByteResponse:
        """Take a change back."""
        undone = self._collection.changes.undo(request.path_parts[1])
        ids = ", ".join(undone.ids)
        is_there = len(undone.ids) == 1 and undone.ids[0] in self._collection.snapshot().skills
        place = _skill_url(undone.ids[0]) if is_there else "/skills"
        return self._site.redirect_with_notice(place, Notice("undone", ids))

    def _render_new(
        self,
        request: PageRequest,
        identity: str,
        text: SkillText,
        draft: SkillDraft | None = None,
        error: SkillhallError | None = None,
    ) -> ByteResponse:
        page = SkillFormPage(
            build_frame(request, request.translations("write.title_new"), "skills"),
            action="/skills/add",
            back_url="/skills",
            id=identity,
            is_new=True,
            text=text,
            digest="",
            draft=draft,
            listing=self._render_listing(draft),
            problem=None if error is None else build_page_error(request, error),
            conflict=None,
        )
        return render_page("write.html", page, status=_page_status(error))

    def _render_edit(  # noqa: PLR0913 - what the form shows
        self,
        request: PageRequest,
        text: SkillText,
        digest: str,
        error: SkillhallError | None = None,
        *,
        with_draft: bool = False,
        conflict: EditConflict | None = None,
    ) -> ByteResponse:
        identity = request.path_parts[1]
        made = self._check_edited_text(identity, text) if with_draft else None
        page = SkillFormPage(
            build_frame(request, request.translations("write.title_edit", name=identity), "skills"),
            action=f"{_skill_url(identity)}/edit",
            back_url=_skill_url(identity),
            id=identity,
            is_new=False,
            text=text,
            digest=digest,
            draft=made,
            listing=self._render_listing(made),
            problem=None if error is None else build_page_error(request, error),
            conflict=conflict,
        )
        return render_page("write.html", page, status=_page_status(error))

    def _render_conflict(
        self, request: PageRequest, text: SkillText, error: StaleVersionError
    ) -> ByteResponse:
        """Both versions; saving once more is a decision for one's own."""
        data = self._read_skill_file(request.path_parts[1])
        theirs = normalize_newlines(data.decode("utf-8", "replace"))
        try:
            mine = normalize_newlines(edit_skill_md(data, text).decode("utf-8", "replace"))
        except SkillhallError:
            mine = text.body
        clash = EditConflict(theirs, mine, diff_texts(theirs, mine))
        return self._render_edit(
            request, text, error.digest, error, with_draft=True, conflict=clash
        )

    def _render_listing(self, draft: SkillDraft | None) -> str:
        item = draft.skill if draft else None
        return self._site.agent_skills.render_prompt_for_draft(item) if item else ""

    def _check_new_text(self, identity: str, text: SkillText) -> SkillDraft:
        return self._collection.draft(identity, text)

    def _check_edited_text(self, identity: str, text: SkillText) -> SkillDraft:
        return draft_skill_md(
            identity, lambda: edit_skill_md(self._read_skill_file(identity), text)
        )

    def _read_skill_file(self, identity: str) -> bytes:
        return self._collection.read_file(identity, self._collection.find(identity).file)


def _read_form(request: PageRequest) -> SkillText:
    form = request.form
    return SkillText(
        form.text("name"), form.text("description"), normalize_newlines(form.text("body"))
    )


def _skill_url(identity: str) -> str:
    return f"/skill/{quote(identity, safe='')}"


def _page_status(error: SkillhallError | None) -> int:
    if error is None:
        return 200
    return (
        409
        if isinstance(error, StaleVersionError | Conflict)
        else max(422, error_status(error).http_status)
    )
