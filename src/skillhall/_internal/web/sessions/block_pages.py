"""Pages that add and edit blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.skill.frontmatter import normalize_newlines
from skillhall._internal.skill_store.version_diff import diff_texts
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.sessions.board_pages import block_title
from skillhall._internal.web.sessions.page_base import SessionPageBase, parse_number, session_url
from skillhall._internal.web.site import PageError, optional_page_error, page_status
from skillhall._internal.web.skills.edit_pages import EditConflict
from skillhall._internal.workspace import Block, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES, SKILL_TYPE
from skillhall._internal.workspace.validation import build_content, parse_zone
from skillhall.errors import RecordNotFound, SkillhallError, VersionConflict

if TYPE_CHECKING:
    from markupsafe import Markup

    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.workspace import Session
    from skillhall._internal.workspace.block_types import BlockType

NEW_BLOCK_KEY = "new"  # instead of a block id


@dataclass(frozen=True, slots=True)
class BlockPage(Page):
    """Form for a block, with a preview."""

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
        """Types to choose from."""
        return tuple(BLOCK_TYPES.values())

    @property
    def zones(self) -> tuple[Zone, ...]:
        """Zones to choose from."""
        return tuple(Zone)


@dataclass(frozen=True, slots=True)
class _BlockForm:
    """Submitted or initial values of the form."""

    type: str
    zone: str
    text: str
    version: int = 0


class BlockPages(SessionPageBase):
    """Handlers of the block pages."""

    def show_new(self, request: PageRequest) -> ByteResponse:
        """Show an empty form for a type of block."""
        block_type = BLOCK_TYPES.get(request.query.get("type", "note"), BLOCK_TYPES["note"])
        return self._render_page(request, _BlockForm(block_type.id, block_type.zone, ""))

    def add(self, request: PageRequest) -> ByteResponse:
        """Add a block."""
        session_id, form = request.path_parts[1], _read_form(request)
        try:
            zone = parse_zone(form.zone) if form.zone else None
            block = self._workspace().blocks.add(session_id, form.type, form.text, zone)
        except SkillhallError as error:
            return self._render_page(request, form, None, error)
        return redirect(f"{session_url(session_id)}#block-{block.id}")

    def check(self, request: PageRequest) -> ByteResponse:
        """Show the form with a preview; nothing is saved."""
        parts, block = request.path_parts, None
        if len(parts) > 4 and parts[3] != NEW_BLOCK_KEY:  # noqa: PLR2004 - path of a block
            block = self._workspace().blocks.find(parts[1], parts[3])
        return self._render_page(request, _read_form(request), block)

    def show_edit(self, request: PageRequest) -> ByteResponse:
        """Show the form with the text of a block."""
        block = self._workspace().blocks.find(request.path_parts[1], request.path_parts[3])
        content = block.content
        form = _BlockForm(content.type, content.zone, content.text, block.version)
        return self._render_page(request, form, block)

    def edit(self, request: PageRequest) -> ByteResponse:
        """Edit a block, unless it was changed since the form was opened."""
        session_id, block_id = request.path_parts[1], request.path_parts[3]
        form, blocks = _read_form(request), self._workspace().blocks
        try:
            blocks.edit(session_id, block_id, form.version, text=form.text, kind=form.type)
        except VersionConflict as error:
            return self._render_page(request, form, error.current, error)
        except RecordNotFound as error:
            return self._render_page(request, form, None, error)
        except SkillhallError as error:
            return self._render_page(request, form, blocks.find(session_id, block_id), error)
        return redirect(f"{session_url(session_id)}#block-{block_id}")

    def _render_page(
        self,
        request: PageRequest,
        form: _BlockForm,
        block: object = None,
        error: SkillhallError | None = None,
    ) -> ByteResponse:
        session = self._workspace().sessions.find(request.path_parts[1])
        existing = block if isinstance(block, Block) else None
        base = session_url(session.id)
        # The text of a block that was deleted elsewhere can be saved as a new block.
        key = existing.id if existing else NEW_BLOCK_KEY
        page = BlockPage(
            build_frame(request, _page_title(request, existing), "sessions"),
            session=session,
            key=key,
            action=f"{base}/blocks/{key}/edit" if existing else f"{base}/add",
            type=form.type if form.type in BLOCK_TYPES else "note",
            zone=form.zone,
            text=form.text,
            version=_base_version(form, error),
            block=existing,
            preview=self._site.markdown.render(form.text, base),
            tokens=_count_tokens(form.text),
            conflict=_build_conflict(existing, form, error),
            problem=optional_page_error(request, error),
        )
        return render_page("block.html", page, status=page_status(error))


def _count_tokens(text: str) -> int:
    try:
        return build_content(SKILL_TYPE, Zone.WORKING, text).tokens
    except SkillhallError:  # reported when the block is saved
        return 0


def _page_title(request: PageRequest, block: Block | None) -> str:
    if block is None:
        return request.translations("block.title_new")
    name = block_title(block)[0] or request.translations(f"type.{block.content.type}")
    return request.translations("block.title_edit", name=name)


def _base_version(form: _BlockForm, error: SkillhallError | None) -> int:
    """Return the version that the next save replaces; after a conflict, the current one."""
    return error.version if isinstance(error, VersionConflict) else form.version


def _build_conflict(
    block: Block | None, form: _BlockForm, error: SkillhallError | None
) -> EditConflict | None:
    if block is None or not isinstance(error, VersionConflict):
        return None
    current = block.content.text
    return EditConflict(current, form.text, diff_texts(current, form.text))


def _read_form(request: PageRequest) -> _BlockForm:
    form = request.form
    return _BlockForm(
        form.text("type"),
        form.text("zone"),
        normalize_newlines(form.text("text")),
        parse_number(form.text("version")),
    )
