"""The pages that change user skills: add, edit, delete, take back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from skillhall._internal.http.errors import status_of
from skillhall._internal.skill.edit import SkillText, edited, plain_lines, text_of
from skillhall._internal.skill_store.draft import Draft, draft_of
from skillhall._internal.skill_store.version_diff import compare_texts
from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, frame_of, page_answer
from skillhall._internal.web.site import Problem, problem_of
from skillhall.errors import ChangedMeanwhile, Conflict, SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.http.response import Answer
    from skillhall._internal.skill_store.version_diff import DiffLine
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Site

_EMPTY = SkillText("", "", "")


@dataclass(frozen=True, slots=True)
class Clash:
    """Two versions of one skill: what stands there, and what somebody wrote meanwhile."""

    theirs: str
    mine: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class WritePage(Page):
    """The form of a skill, and what would come of it."""

    action: str
    back: str
    id: str
    is_new: bool
    text: SkillText
    digest: str
    draft: Draft | None
    listing: str  # the system prompt with this skill alone
    problem: Problem | None
    clash: Clash | None


@dataclass(frozen=True, slots=True)
class DeletePage(Page):
    """The question before a skill is removed."""

    id: str
    files: int
    is_shadowed: bool  # a user skill that a system skill shadows
    can_take_back: bool


class ShapingPages:
    """The calls of these pages."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._collection = site.collection

    def show_new(self, visit: Visit) -> Answer:
        """An empty form."""
        return self._new_page(visit, "", _EMPTY)

    def check_new(self, visit: Visit) -> Answer:
        """The form with what would come of it; nothing is written."""
        identity, text = visit.form.text("id"), _text(visit)
        is_blank = not (identity.strip() or text.name.strip())
        made = None if is_blank else self._draft(identity or text.name, text)
        return self._new_page(visit, identity, text, made)

    def add(self, visit: Visit) -> Answer:
        """Write a new skill."""
        identity, text = visit.form.text("id"), _text(visit)
        wanted = identity.strip() or text.name
        try:
            made = self._collection.local.add(wanted, *text)
        except SkillhallError as error:
            return self._new_page(visit, identity, text, self._draft(wanted, text), error)
        return self._site.done(_address(made.id), Notice("added", made.id))

    def show_edit(self, visit: Visit) -> Answer:
        """The form with a skill's own words."""
        identity = visit.names[1]
        self._collection.refuse_read_only(identity)
        details = self._collection.details(identity)
        return self._edit_page(visit, text_of(self._data(identity)), details.digest)

    def check_edit(self, visit: Visit) -> Answer:
        """The form with what would come of it; nothing is written."""
        identity, text = visit.names[1], _text(visit)
        self._collection.refuse_read_only(identity)
        return self._edit_page(visit, text, visit.form.text("digest"), with_draft=True)

    def edit(self, visit: Visit) -> Answer:
        """Change a skill, unless somebody else did since the form was opened."""
        identity, text, digest = visit.names[1], _text(visit), visit.form.text("digest")
        try:
            changed = self._collection.edit(identity, text, digest)
        except ChangedMeanwhile as error:
            return self._clash_page(visit, text, error)
        except SkillhallError as error:
            self._collection.refuse_read_only(identity)
            return self._edit_page(visit, text, digest, error, with_draft=True)
        return self._site.done(_address(identity), Notice("edited", identity, changed.change))

    def ask_delete(self, visit: Visit) -> Answer:
        """The question before a skill is removed."""
        identity, is_shadowed = visit.names[1], visit.query.get("shadowed") == "true"
        own = self._collection.shadowed_bundle(identity) if is_shadowed else None
        if own is None:
            self._collection.refuse_read_only(identity)
        bundle = own or self._collection.bundle(identity)
        page = DeletePage(
            frame_of(visit, visit.texts("delete.title", name=identity), "skills"),
            identity,
            len(bundle.files),
            is_shadowed,
            self._collection.changes.can_take_back(identity),
        )
        return page_answer("delete.html", page)

    def delete(self, visit: Visit) -> Answer:
        """Remove a skill."""
        identity = visit.names[1]
        shadowed = visit.form.text("shadowed") == "true"
        change = self._collection.delete(identity, shadowed=shadowed)
        return self._site.done("/skills", Notice("deleted", identity, change))

    def undo(self, visit: Visit) -> Answer:
        """Take a change back."""
        undone = self._collection.changes.undo(visit.names[1])
        ids = ", ".join(undone.ids)
        is_there = len(undone.ids) == 1 and undone.ids[0] in self._collection.show().skills
        place = _address(undone.ids[0]) if is_there else "/skills"
        return self._site.done(place, Notice("undone", ids))

    def _new_page(
        self,
        visit: Visit,
        identity: str,
        text: SkillText,
        made: Draft | None = None,
        error: SkillhallError | None = None,
    ) -> Answer:
        page = WritePage(
            frame_of(visit, visit.texts("write.title_new"), "skills"),
            action="/skills/add",
            back="/skills",
            id=identity,
            is_new=True,
            text=text,
            digest="",
            draft=made,
            listing=self._listing(made),
            problem=None if error is None else problem_of(visit, error),
            clash=None,
        )
        return page_answer("write.html", page, status=_status(error))

    def _edit_page(  # noqa: PLR0913 - what the form shows
        self,
        visit: Visit,
        text: SkillText,
        digest: str,
        error: SkillhallError | None = None,
        *,
        with_draft: bool = False,
        clash: Clash | None = None,
    ) -> Answer:
        identity = visit.names[1]
        made = self._edit_draft(identity, text) if with_draft else None
        page = WritePage(
            frame_of(visit, visit.texts("write.title_edit", name=identity), "skills"),
            action=f"{_address(identity)}/edit",
            back=_address(identity),
            id=identity,
            is_new=False,
            text=text,
            digest=digest,
            draft=made,
            listing=self._listing(made),
            problem=None if error is None else problem_of(visit, error),
            clash=clash,
        )
        return page_answer("write.html", page, status=_status(error))

    def _clash_page(self, visit: Visit, text: SkillText, error: ChangedMeanwhile) -> Answer:
        """Both versions; saving once more is a decision for one's own."""
        data = self._data(visit.names[1])
        theirs = plain_lines(data.decode("utf-8", "replace"))
        try:
            mine = plain_lines(edited(data, text).decode("utf-8", "replace"))
        except SkillhallError:
            mine = text.body
        clash = Clash(theirs, mine, compare_texts(theirs, mine))
        return self._edit_page(visit, text, error.digest, error, with_draft=True, clash=clash)

    def _listing(self, made: Draft | None) -> str:
        item = made.item if made else None
        return self._site.agent.text_about_draft(item) if item else ""

    def _draft(self, identity: str, text: SkillText) -> Draft:
        return self._collection.draft(identity, text)

    def _edit_draft(self, identity: str, text: SkillText) -> Draft:
        return draft_of(identity, lambda: edited(self._data(identity), text))

    def _data(self, identity: str) -> bytes:
        return self._collection.read_file(identity, self._collection.find(identity).file)


def _text(visit: Visit) -> SkillText:
    form = visit.form
    return SkillText(form.text("name"), form.text("description"), plain_lines(form.text("body")))


def _address(identity: str) -> str:
    return f"/skill/{quote(identity, safe='')}"


def _status(error: SkillhallError | None) -> int:
    if error is None:
        return 200
    return (
        409 if isinstance(error, ChangedMeanwhile | Conflict) else max(422, status_of(error).http)
    )
