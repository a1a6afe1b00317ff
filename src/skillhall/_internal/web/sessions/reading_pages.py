"""Reading view: the rendered texts of a session's blocks, in the order of the context."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from skillhall._internal.policy.effects import JudgedFinding
from skillhall._internal.web.page_request import PageRequest
from skillhall._internal.web.rendering import render
from skillhall._internal.web.sessions.board_pages import block_name, find_warnings
from skillhall._internal.workspace import Block
from skillhall.errors import RecordNotFound

MAX_BLOCKS = 50  # on one page
MAX_CHARACTERS = 200_000  # of their texts, unless one block has more


class ReadBlock(NamedTuple):
    """A rendered block."""

    block: Block
    name: str
    body: Markup
    warnings: tuple[JudgedFinding, ...]


def show(request: PageRequest) -> Response:
    """Show the blocks from the one in the query on, as many as fit on a page."""
    workspace, session_id = request.workspace, request.path_params["id"]
    session, blocks = workspace.sessions.find(session_id), workspace.blocks.list(session_id)
    start, url = _find_start(request, blocks), f"/session/{session_id}/read?from="
    end = start + count_fitting(blocks[start:])
    before = start - count_fitting(reversed(blocks[:start]))
    return render(
        request,
        "read.html",
        request.translations("read.title", name=session.name),
        session=session,
        blocks=[_render_block(request, block) for block in blocks[start:end]],
        first=start + 1,
        last=end,
        total=len(blocks),
        previous_url=f"{url}{blocks[before].id}" if start else "",
        next_url=f"{url}{blocks[end].id}" if end < len(blocks) else "",
    )


def _find_start(request: PageRequest, blocks: Sequence[Block]) -> int:
    """Return the index of the first block to show. Raises: RecordNotFound."""
    block_id = request.query_params.get("from", "")
    if not block_id:
        return 0
    found = (index for index, block in enumerate(blocks) if block.id == block_id)
    start = next(found, None)
    if start is None:
        raise RecordNotFound("block", block_id)
    return start


def count_fitting(blocks: Iterable[Block]) -> int:
    """Return how many of the blocks fit on a page: at least one, if there are any."""
    sizes = accumulate(len(block.content.text) for block in blocks)
    fitting = takewhile(
        lambda item: not item[0] or (item[0] < MAX_BLOCKS and item[1] <= MAX_CHARACTERS),
        enumerate(sizes),
    )
    return sum(1 for _ in fitting)


def _render_block(request: PageRequest, block: Block) -> ReadBlock:
    base = f"/session/{block.session}"
    return ReadBlock(
        block,
        block_name(request, block),
        request.site.markdown.render(block.content.text, base),
        find_warnings(request, block),
    )
