"""Pages that add and edit blocks."""

from typing import NamedTuple

from starlette.responses import Response

from skillhall._internal.skill.frontmatter_locator import normalize_newlines
from skillhall._internal.skill_store.versions.version_diff import diff_texts
from skillhall._internal.web.page_request import PageRequest, on_error, redirect
from skillhall._internal.web.rendering import render
from skillhall._internal.web.sessions.board_pages import block_name
from skillhall._internal.web.skills.edit_pages import EditConflict
from skillhall._internal.workspace import Block, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES, SKILL_TYPE
from skillhall._internal.workspace.validation import build_content, parse_zone
from skillhall.errors import RecordNotFound, SkillhallError, VersionConflict

NEW_BLOCK_KEY = "new"  # instead of a block id


class _BlockForm(NamedTuple):
    """Submitted or initial values of the form."""

    type: str
    zone: str
    text: str
    version: int = 0


def show_new(request: PageRequest) -> Response:
    """Show an empty form for a type of block."""
    type_id = request.query_params.get("type", "note")
    block_type = BLOCK_TYPES.get(type_id, BLOCK_TYPES["note"])
    zone = request.query_params.get("zone", "")
    zone = zone if zone in [*Zone] else block_type.zone
    return _render_page(request, _BlockForm(block_type.id, zone, ""))


def show_edit(request: PageRequest) -> Response:
    """Show the form with the text of a block."""
    parameters = request.path_params
    block = request.workspace.blocks.find(parameters["id"], parameters["block"])
    content = block.content
    form = _BlockForm(content.type, content.zone, content.text, block.version)
    return _render_page(request, form, block)


def check(request: PageRequest) -> Response:
    """Show the submitted form with a preview and its error, if any; nothing is saved."""
    session_id, block_id = request.path_params["id"], request.path_params.get("block")
    block: object = None
    if isinstance(request.error, VersionConflict):
        block = request.error.current
    elif block_id not in (None, NEW_BLOCK_KEY) and not isinstance(request.error, RecordNotFound):
        block = request.workspace.blocks.find(session_id, block_id)
    return _render_page(request, _read_form(request), block if isinstance(block, Block) else None)


@on_error(check)
def add(request: PageRequest) -> Response:
    """Add a block."""
    session_id, form = request.path_params["id"], _read_form(request)
    zone = parse_zone(form.zone) if form.zone else None
    block = request.workspace.blocks.add(session_id, form.type, form.text, zone)
    return redirect(f"/session/{session_id}#block-{block.id}")


@on_error(check)
def edit(request: PageRequest) -> Response:
    """Edit a block, unless it has been changed since the form was opened."""
    session_id, block_id = request.path_params["id"], request.path_params["block"]
    form, blocks = _read_form(request), request.workspace.blocks
    blocks.edit(session_id, block_id, form.version, text=form.text, kind=form.type)
    return redirect(f"/session/{session_id}#block-{block_id}")


def _render_page(request: PageRequest, form: _BlockForm, block: Block | None = None) -> Response:
    session, error = request.workspace.sessions.find(request.path_params["id"]), request.error
    base, version, conflict = f"/session/{session.id}", form.version, None
    if isinstance(error, VersionConflict):
        version = error.version  # the next save replaces the current version
        if block:
            current_text = block.content.text
            lines = diff_texts(current_text, form.text)
            conflict = EditConflict(current_text, form.text, lines)
    if block:
        key, action = block.id, f"{base}/blocks/{block.id}/edit"
        title = request.translations("block.title_edit", name=block_name(request, block))
    else:  # also for a block that was deleted elsewhere: its text can be saved as a new block
        key, action = NEW_BLOCK_KEY, f"{base}/add"
        title = request.translations("block.title_new")
    return render(
        request,
        "block.html",
        title,
        session=session,
        key=key,
        action=action,
        type=form.type if form.type in BLOCK_TYPES else "note",
        zone=form.zone,
        text=form.text,
        version=version,
        block=block,
        preview=request.site.markdown.render(form.text, base),
        tokens=_count_tokens(form.text),
        conflict=conflict,
    )


def _count_tokens(text: str) -> int:
    try:
        return build_content(SKILL_TYPE, Zone.WORKING, text).tokens
    except SkillhallError:  # reported when the block is saved
        return 0


def _read_form(request: PageRequest) -> _BlockForm:
    return _BlockForm(
        request.field("type"),
        request.field("zone"),
        normalize_newlines(request.field("text")),
        request.number_field("version"),
    )
