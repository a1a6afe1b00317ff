"""The board of a session: three zones of cards, and what is done to a card there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.sessions.page_base import (
    SessionPageBase,
    optional_page_error,
    page_status,
    parse_number,
    session_url,
)
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall._internal.workspace.context import compute_spending
from skillhall._internal.workspace.ordering import BlockPlacement
from skillhall._internal.workspace.validation import parse_zone
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import PageError
    from skillhall._internal.workspace import Block, Session
    from skillhall._internal.workspace.block_types import BlockType
    from skillhall._internal.workspace.context import Spending

CARDS_PER_ZONE = 20  # cards of a zone, until somebody asks for more
_MORE_CARDS = 100  # more of them, then
_MAX_CARDS = 20_000
_BLOCK_PATH_DEPTH = 3  # names in a path before those of a block's own
_MAX_TITLE, _MAX_EXCERPT = 70, 180  # characters


class BoardFilter(NamedTuple):
    """What of a board is looked at: one type or all, and how many cards of each zone."""

    type: str = ""
    permanent: int = CARDS_PER_ZONE
    stable: int = CARDS_PER_ZONE
    working: int = CARDS_PER_ZONE

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> BoardFilter:
        """The view that an address or a form asks for."""
        kind = query.get("type", "")
        counts = (parse_number(query.get(zone.lower(), "")) for zone in Zone)
        limits = [min(max(CARDS_PER_ZONE, one), _MAX_CARDS) for one in counts]
        return cls(kind if kind in BLOCK_TYPES else "", *limits)

    def limit(self, zone: Zone) -> int:
        """How many cards of a zone are shown."""
        return (self.permanent, self.stable, self.working)[[*Zone].index(zone)]

    def with_more(self, zone: Zone) -> BoardFilter:
        """The view with more cards of a zone."""
        limits = (self.limit(one) + (_MORE_CARDS if one is zone else 0) for one in Zone)
        return BoardFilter(self.type, *limits)

    @property
    def query_string(self) -> str:
        """As an address has it, with its question mark."""
        return f"?{urlencode(self.parameters)}" if self.parameters else ""

    @property
    def parameters(self) -> tuple[tuple[str, object], ...]:
        """What is chosen, for forms to send along."""
        return tuple(
            (key, one) for key, one in self._asdict().items() if one not in ("", CARDS_PER_ZONE)
        )

    def board_url(self, session: str) -> str:
        """The address of a board that is looked at like this."""
        return f"{session_url(session)}{self.query_string}"


@dataclass(frozen=True, slots=True)
class Card:
    """One block as the board shows it."""

    block: Block
    title: str
    excerpt: str
    previous_id: str  # the ids of the blocks beside it
    next_id: str
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class BoardZone:
    """One zone as the board shows it."""

    zone: Zone
    cards: tuple[Card, ...]
    block_count: int  # of blocks, shown or not
    spending: Spending
    more_url: str  # the address of a board with more of them


@dataclass(frozen=True, slots=True)
class TypeFilterLink:
    """A type that is on the board."""

    type: BlockType
    url: str
    block_count: int
    is_selected: bool


@dataclass(frozen=True, slots=True)
class BoardPage(Page):
    """The board."""

    session: Session
    zones: tuple[BoardZone, ...]
    total: Spending
    board_filter: BoardFilter
    type_filters: tuple[TypeFilterLink, ...]
    block_count: int  # of blocks, of any type
    last_event: int
    problem: PageError | None  # about a block that is not shown

    @property
    def types(self) -> tuple[BlockType, ...]:
        """Every type that a person can add."""
        return tuple(BLOCK_TYPES.values())

    @property
    def url(self) -> str:
        """Where this board, looked at like this, is."""
        return self.board_filter.board_url(self.session.id)


class BoardPages(SessionPageBase):
    """The calls of the board."""

    def show(self, request: PageRequest) -> ByteResponse:
        """The board."""
        return self._render_board(request, BoardFilter.from_query(request.query))

    def move(self, request: PageRequest) -> ByteResponse:
        """A block elsewhere: `place` is how, beside which block, and in which zone."""
        how, beside, zone = [*request.form.text("place").split(","), "", ""][:3]
        place = BlockPlacement(
            after=beside if how == "after" else "",
            before=beside if how == "before" else "",
            first=how == "first",
        )
        version = parse_number(request.form.text("version"))
        try:
            self._workspace().blocks.move(
                request.path_parts[1],
                request.path_parts[3],
                version,
                parse_zone(zone) if zone else None,
                place,
            )
        except SkillhallError as error:
            return self._render_board(request, _filter_from_form(request), error)
        return redirect(_filter_from_form(request).board_url(request.path_parts[1]))

    def delete(self, request: PageRequest) -> ByteResponse:
        """Remove a block; the notice brings it back."""
        session, identity = request.path_parts[1], request.path_parts[3]
        version = parse_number(request.form.text("version"))
        try:
            gone = self._workspace().blocks.delete(session, identity, version)
        except SkillhallError as error:
            return self._render_board(request, _filter_from_form(request), error)
        title = block_title(gone)[0] or request.translations(f"type.{gone.content.type}")
        notice = Notice("deleted", title, f"{session}/{identity}")
        return self._site.redirect_with_notice(
            _filter_from_form(request).board_url(session), notice
        )

    def restore(self, request: PageRequest) -> ByteResponse:
        """A deleted block, where it was."""
        block = self._workspace().blocks.restore(request.path_parts[1], request.path_parts[3])
        title = block_title(block)[0] or request.translations(f"type.{block.content.type}")
        place = f"{session_url(request.path_parts[1])}#block-{block.id}"
        return self._site.redirect_with_notice(place, Notice("undone", title))

    def _render_board(
        self, request: PageRequest, board_filter: BoardFilter, error: SkillhallError | None = None
    ) -> ByteResponse:
        desk, identity = self._workspace(), request.path_parts[1]
        # The last event first: whatever comes after it is told again, never missed.
        last_event = desk.event_range()[1]
        found = desk.sessions.overview(identity)
        blocks = desk.blocks.list(identity)
        spent = compute_spending(found.session, found.zone_sizes)
        shown = [one for one in blocks if board_filter.type in ("", one.content.type)]
        problem = optional_page_error(request, error)
        problems = (
            {request.path_parts[3]: problem}
            if problem and len(request.path_parts) > _BLOCK_PATH_DEPTH
            else {}
        )
        columns = tuple(
            _build_zone(
                [one for one in shown if one.zone is zone],
                zone,
                board_filter,
                spent[zone],
                problems,
            )
            for zone in Zone
        )
        is_told = any(card.problem for column in columns for card in column.cards)
        page = BoardPage(
            build_frame(request, found.session.name, "sessions"),
            session=found.session,
            zones=columns,
            total=spent[None],
            board_filter=board_filter,
            type_filters=_build_type_filters(found.session.id, board_filter, blocks),
            block_count=len(blocks),
            last_event=last_event,
            problem=None if is_told else problem,
        )
        return render_page("board.html", page, status=page_status(error))


def block_title(block: Block) -> tuple[str, str]:
    """What a block is called, and what is said below: of a skill what it tells of itself."""
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


def _build_zone(
    blocks: Sequence[Block],
    zone: Zone,
    board_filter: BoardFilter,
    spending: Spending,
    problems: Mapping[str, PageError],
) -> BoardZone:
    limit = board_filter.limit(zone)
    ids = ["", *(one.id for one in blocks[: limit + 1]), ""]
    cards = tuple(
        Card(
            one,
            *block_title(one),
            previous_id=ids[number],
            next_id=ids[number + 2],
            problem=problems.get(one.id),
        )
        for number, one in enumerate(blocks[:limit])
    )
    more = board_filter.with_more(zone).board_url(blocks[0].session) if len(blocks) > limit else ""
    return BoardZone(zone, cards, len(blocks), spending, more)


def _build_type_filters(
    session: str, board_filter: BoardFilter, blocks: Sequence[Block]
) -> tuple[TypeFilterLink, ...]:
    counts: dict[str, int] = {}
    for block in blocks:
        counts[block.content.type] = counts.get(block.content.type, 0) + 1
    wanted = [
        one for one in BLOCK_TYPES.values() if one.id in counts or one.id == board_filter.type
    ]
    return tuple(
        TypeFilterLink(
            one,
            BoardFilter(type=one.id).board_url(session),
            counts.get(one.id, 0),
            is_selected=one.id == board_filter.type,
        )
        for one in wanted
    )


def _filter_from_form(request: PageRequest) -> BoardFilter:
    """The view that a form was sent from."""
    return BoardFilter.from_query({key: values[0] for key, values in request.form.fields.items()})
