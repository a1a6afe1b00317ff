"""Session board: three zones of cards, and the actions on a card."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple, Self
from urllib.parse import urlencode

from starlette.responses import Response

from skillhall._internal.policy.effects import JudgedFinding
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.web.page_request import PageRequest, on_error, parse_number, redirect
from skillhall._internal.web.rendering import render
from skillhall._internal.workspace import Block, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall._internal.workspace.compiled_context import Spending, compute_spending
from skillhall._internal.workspace.ordering import BlockPlacement
from skillhall._internal.workspace.skill_blocks import find_risks
from skillhall._internal.workspace.validation import parse_zone

CARDS_PER_ZONE = 20  # shown at first
_MORE_CARDS = 100  # added by "Show more"
_MAX_CARDS = 20_000
_LARGEST_COUNT = 3
_MAX_TITLE, _MAX_EXCERPT = 70, 180  # characters


class BoardFilter(NamedTuple):
    """Block type to show, order of the cards, and number of cards per zone."""

    type: str = ""
    sort: str = ""  # "tokens": the largest first; otherwise as models read them
    permanent: int = CARDS_PER_ZONE
    stable: int = CARDS_PER_ZONE
    working: int = CARDS_PER_ZONE

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Self:
        """Parse the parameters of a URL or form."""
        kind = query.get("type", "")
        counts = (parse_number(query.get(zone.lower(), "")) for zone in Zone)
        limits = [min(max(CARDS_PER_ZONE, count), _MAX_CARDS) for count in counts]
        sort = "tokens" if query.get("sort") == "tokens" else ""
        return cls(kind if kind in BLOCK_TYPES else "", sort, *limits)

    def limit(self, zone: Zone) -> int:
        """Return the number of cards to show in a zone."""
        return (self.permanent, self.stable, self.working)[[*Zone].index(zone)]

    def with_more(self, zone: Zone) -> "BoardFilter":
        """Return the filter with more cards in a zone."""
        limits = (self.limit(each) + (_MORE_CARDS if each is zone else 0) for each in Zone)
        return BoardFilter(self.type, self.sort, *limits)

    @property
    def parameters(self) -> tuple[tuple[str, object], ...]:
        """Parameters that differ from the defaults."""
        items, defaults = self._asdict().items(), ("", CARDS_PER_ZONE)
        return tuple((key, value) for key, value in items if value not in defaults)

    def board_url(self, session: str) -> str:
        """Return the URL of a board with this filter."""
        query = f"?{urlencode(self.parameters)}" if self.parameters else ""
        return f"/session/{session}{query}"


class Card(NamedTuple):
    """Block on the board."""

    block: Block
    title: str
    excerpt: str
    previous_id: str  # neighbors in the zone; "" at its ends
    next_id: str


class BoardZone(NamedTuple):
    """Zone on the board."""

    zone: Zone
    cards: tuple[Card, ...]
    block_count: int  # including blocks that are not shown
    spending: Spending
    more_url: str  # board with more cards of this zone; "" if all are shown
    largest: tuple["LargeBlock", ...]  # if little of the budget is left


class LargeBlock(NamedTuple):
    """Block that takes much of a budget."""

    id: str
    title: str  # "" if its text is empty
    type: str
    tokens: int


def show(request: PageRequest) -> Response:
    """Show the board, and the error if an action on one of its cards has failed."""
    board_filter = BoardFilter.from_query(request.fields or request.query_params)
    workspace, session_id = request.workspace, request.path_params["id"]
    # Read before the blocks: a change in between is then sent again, never missed.
    last_event = workspace.event_range()[1]
    overview = workspace.sessions.overview(session_id)
    session, blocks = overview.session, workspace.blocks.list(session_id)
    spending = compute_spending(session, overview.zone_sizes)
    shown = [block for block in blocks if board_filter.type in ("", block.content.type)]
    zones = []
    for zone in Zone:
        zone_blocks = [block for block in shown if block.zone is zone]
        largest = _find_largest((b for b in blocks if b.zone is zone), spending[zone])
        zones.append(_build_zone(zone_blocks, zone, board_filter, spending[zone], largest))
    total_largest = _find_largest(blocks, spending[None])
    cards = [card for zone in zones for card in zone.cards]
    # The error is shown on its card, or above the board if the card is not shown.
    failed_id = request.path_params.get("block") if request.error else None
    is_on_card = any(card.block.id == failed_id for card in cards)
    return render(
        request,
        "board.html",
        session.name,
        session=session,
        zones=zones,
        total=spending[None],
        largest=total_largest,
        shares=_compute_shares(
            (total_largest, spending[None]), *((z.largest, z.spending) for z in zones)
        ),
        warnings={card.block.id: len(find_warnings(request, card.block)) for card in cards},
        board_filter=board_filter,
        order_urls=[
            board_filter._replace(sort=sort).board_url(session_id) for sort in ("", "tokens")
        ],
        url=board_filter.board_url(session_id),
        type_counts=Counter(block.content.type for block in blocks),
        block_count=len(blocks),  # of all types
        last_event=last_event,
        failed_block=failed_id if is_on_card else None,
    )


@on_error(show)
def move(request: PageRequest) -> Response:
    """Move a block; the field `placement` is "mode,neighbor,zone"."""
    mode, neighbor, zone = [*request.field("placement").split(","), "", ""][:3]
    placement = BlockPlacement(
        after=neighbor if mode == "after" else "",
        before=neighbor if mode == "before" else "",
        first=mode == "first",
    )
    session_id, block_id = request.path_params["id"], request.path_params["block"]
    version = request.number_field("version")
    board_filter = BoardFilter.from_query(request.fields)
    target = parse_zone(zone) if zone else None
    request.workspace.blocks.move(session_id, block_id, version, target, placement)
    return redirect(board_filter.board_url(session_id))


@on_error(show)
def delete(request: PageRequest) -> Response:
    """Delete a block; the notice has a button to undo it."""
    session_id, block_id = request.path_params["id"], request.path_params["block"]
    version = request.number_field("version")
    board_filter = BoardFilter.from_query(request.fields)
    block = request.workspace.blocks.delete(session_id, block_id, version)
    url, name = board_filter.board_url(session_id), block_name(request, block)
    return request.redirect(url, "deleted", name, f"{session_id}/{block_id}")


def restore(request: PageRequest) -> Response:
    """Restore a deleted block at its former position."""
    session_id, block_id = request.path_params["id"], request.path_params["block"]
    block = request.workspace.blocks.restore(session_id, block_id)
    url = f"/session/{session_id}#block-{block.id}"
    return request.redirect(url, "undone", block_name(request, block))


def block_name(request: PageRequest, block: Block) -> str:
    """Return the title of a block, else the name of its type."""
    return block_title(block)[0] or request.translations(f"type.{block.content.type}")


def find_warnings(request: PageRequest, block: Block) -> tuple[JudgedFinding, ...]:
    """Return the warnings about the text of a block."""
    text = block.content.text
    key = sha256_hex(text.encode("utf-8"))
    return request.site.block_findings.get_or_create(key, lambda: find_risks(text))


def block_title(block: Block) -> tuple[str, str]:
    """Return title and excerpt: a skill's name and description, else the first lines."""
    skill = block.content.skill
    if skill is not None:
        return skill.name, skill.description
    text = block.content.text[:2000].strip()
    first, _, rest = text.partition("\n")
    title = first.strip().lstrip("#").strip() or first.strip()
    excerpt = " ".join(rest[: 2 * _MAX_EXCERPT].split())
    if len(title) > _MAX_TITLE:
        cut = title[:_MAX_TITLE].rpartition(" ")[0] or title[:_MAX_TITLE]
        title, excerpt = f"{cut}…", f"{title[len(cut) :].strip()} {excerpt}"
    return title, excerpt if len(excerpt) <= _MAX_EXCERPT else f"{excerpt[:_MAX_EXCERPT].rstrip()}…"


def _find_largest(blocks: Iterable[Block], spending: Spending) -> tuple[LargeBlock, ...]:
    """Return the blocks that take most of a budget; none if enough of it is left."""
    if spending.level == "fine":
        return ()
    largest = nlargest(_LARGEST_COUNT, blocks, key=lambda block: block.content.tokens)
    return tuple(
        LargeBlock(block.id, block_title(block)[0], block.content.type, block.content.tokens)
        for block in largest
    )


def _compute_shares(
    *budgets: tuple[tuple[LargeBlock, ...], Spending],
) -> dict[str, float]:
    """Return the shares that the largest blocks take of a budget, by block id."""
    return {
        block.id: Spending(block.tokens, spending.budget).share
        for largest, spending in budgets
        for block in largest
    }


def _build_zone(
    blocks: Sequence[Block],
    zone: Zone,
    board_filter: BoardFilter,
    spending: Spending,
    largest: tuple[LargeBlock, ...],
) -> BoardZone:
    if board_filter.sort:
        blocks = sorted(blocks, key=lambda block: -block.content.tokens)
    limit = board_filter.limit(zone)
    ids = ["", *(block.id for block in blocks[: limit + 1]), ""]
    cards = tuple(
        # In another order, cards have no neighbors to move past.
        Card(
            block,
            *block_title(block),
            *(("", "") if board_filter.sort else ids[index : index + 3 : 2]),
        )
        for index, block in enumerate(blocks[:limit])
    )
    more = board_filter.with_more(zone).board_url(blocks[0].session) if len(blocks) > limit else ""
    return BoardZone(zone, cards, len(blocks), spending, more, largest)
