"""The pages that write blocks: a new one, or other words for one that is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.skill.frontmatter import normalize_newlines
from skillhall._internal.skill_store.version_diff import diff_texts
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.sessions.board_pages import block_title
from skillhall._internal.web.sessions.page_base import (
    SessionPageBase,
    optional_page_error,
    page_status,
    parse_number,
    session_url,
)
from skillhall._internal.web.skills.edit_pages import EditConflict
from skillhall._internal.workspace import Block, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES, SKILL_TYPE
from skillhall._internal.workspace.validation import build_content, parse_zone
from skillhall.errors import RecordNotFound, SkillhallError, VersionConflict

if TYPE_CHECKING:
    from markupsafe import Markup

    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import PageError
    from skillhall._internal.workspace import Session
    from skillhall._internal.workspace.block_types import BlockType

NEW_BLOCK_KEY = "new"  # in place of a block's id


@dataclass(frozen=True, slots=True)
class BlockPage(Page):
    """The form of a block, and how its text reads."""

    session: Session
    key: str  # the block's id, or "new"
    action: str
    type: str
    zone: str
    text: str
    version: int
    block: Block | None
    preview: Markup
    tokens: int
    conflict: EditConflict | None
    problem: PageError | None

    @property
    def types(self) -> tuple[BlockType, ...]:
        """What it can be."""
        return tuple(BLOCK_TYPES.values())

    @property
    def zones(self) -> tuple[Zone, ...]:
        """Where it can go."""
        return tuple(Zone)


@dataclass(frozen=True, slots=True)
class _BlockForm:
    """What stands in the form."""

    type: str
    zone: str
    text: str
    version: int = 0


class BlockPages(SessionPageBase):
    """The calls of these pages."""

    def show_new(self, request: PageRequest) -> ByteResponse:
        """An empty form for a type."""
        kind = request.query.get("type", "note")
        known = BLOCK_TYPES.get(kind, BLOCK_TYPES["note"])
        return self._render_page(request, _BlockForm(known.id, known.zone, ""))

    def add(self, request: PageRequest) -> ByteResponse:
        """Write a new block."""
        draft = _read_form(request)
        try:
            zone = parse_zone(draft.zone) if draft.zone else None
            made = self._workspace().blocks.add(request.path_parts[1], draft.type, draft.text, zone)
        except SkillhallError as error:
            return self._render_page(request, draft, None, error)
        return redirect(f"{session_url(request.path_parts[1])}#block-{made.id}")

    def check(self, request: PageRequest) -> ByteResponse:
        """The form with how its text reads; nothing is written."""
        identity = request.path_parts[3] if len(request.path_parts) > 4 else NEW_BLOCK_KEY  # noqa: PLR2004 - a block's path
        block = (
            None
            if identity == NEW_BLOCK_KEY
            else self._workspace().blocks.find(request.path_parts[1], identity)
        )
        return self._render_page(request, _read_form(request), block)

    def show_edit(self, request: PageRequest) -> ByteResponse:
        """The form with a block's own words."""
        block = self._workspace().blocks.find(request.path_parts[1], request.path_parts[3])
        content = block.content
        draft = _BlockForm(content.type, content.zone, content.text, block.version)
        return self._render_page(request, draft, block)

    def edit(self, request: PageRequest) -> ByteResponse:
        """Change a block, unless somebody else did since the form was opened."""
        session, identity, draft = request.path_parts[1], request.path_parts[3], _read_form(request)
        try:
            self._workspace().blocks.edit(
                session, identity, draft.version, text=draft.text, kind=draft.type
            )
        except VersionConflict as error:
            return self._render_page(request, draft, error.current, error)
        except RecordNotFound as error:
            return self._render_page(request, draft, None, error)
        except SkillhallError as error:
            return self._render_page(
                request, draft, self._workspace().blocks.find(session, identity), error
            )
        return redirect(f"{session_url(session)}#block-{identity}")

    def _render_page(
        self,
        request: PageRequest,
        form: _BlockForm,
        block: object = None,
        error: SkillhallError | None = None,
    ) -> ByteResponse:
        session = self._workspace().sessions.find(request.path_parts[1])
        present = block if isinstance(block, Block) else None
        base = session_url(session.id)
        # A block that is gone is written anew: nothing that somebody wrote is lost.
        key = present.id if present else NEW_BLOCK_KEY
        page = BlockPage(
            build_frame(request, _page_title(request, present), "sessions"),
            session=session,
            key=key,
            action=f"{base}/blocks/{key}/edit" if present else f"{base}/add",
            type=form.type if form.type in BLOCK_TYPES else "note",
            zone=form.zone,
            text=form.text,
            version=_base_version(form, error),
            block=present,
            preview=self._site.markdown.render(form.text, base),
            tokens=_count_tokens(form.text),
            conflict=_build_conflict(present, form, error),
            problem=optional_page_error(request, error),
        )
        return render_page("block.html", page, status=page_status(error))


def _count_tokens(text: str) -> int:
    try:
        return build_content(SKILL_TYPE, Zone.WORKING, text).tokens
    except SkillhallError:  # saving it tells why
        return 0


def _page_title(request: PageRequest, block: Block | None) -> str:
    if block is None:
        return request.translations("block.title_new")
    called = block_title(block)[0] or request.translations(f"type.{block.content.type}")
    return request.translations("block.title_edit", name=called)


def _base_version(form: _BlockForm, error: SkillhallError | None) -> int:
    """The version that the next change is made against: whoever was shown it, knows it."""
    return error.version if isinstance(error, VersionConflict) else form.version


def _build_conflict(
    block: Block | None, form: _BlockForm, error: SkillhallError | None
) -> EditConflict | None:
    if block is None or not isinstance(error, VersionConflict):
        return None
    theirs = block.content.text
    return EditConflict(theirs, form.text, diff_texts(theirs, form.text))


def _read_form(request: PageRequest) -> _BlockForm:
    form = request.form
    return _BlockForm(
        form.text("type"),
        form.text("zone"),
        normalize_newlines(form.text("text")),
        parse_number(form.text("version")),
    )
