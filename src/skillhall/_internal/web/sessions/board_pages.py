"""The board of a session: three zones of cards, and what is done to a card there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, frame_of, page_answer, redirect
from skillhall._internal.web.sessions.page_base import (
    DeskPages,
    number_in,
    session_address,
    status_for,
    told,
)
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall._internal.workspace.context import spend
from skillhall._internal.workspace.ordering import Place
from skillhall._internal.workspace.validation import checked_zone
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.http.response import Answer
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Problem
    from skillhall._internal.workspace import Block, Session
    from skillhall._internal.workspace.block_types import BlockType
    from skillhall._internal.workspace.context import Spending

SHOWN = 20  # cards of a zone, until somebody asks for more
_STEP = 100  # more of them, then
_MOST = 20_000
_OF_BLOCK = 3  # names in a path before those of a block's own
_TITLE, _EXCERPT = 70, 180  # characters


class View(NamedTuple):
    """What of a board is looked at: one type or all, and how many cards of each zone."""

    type: str = ""
    permanent: int = SHOWN
    stable: int = SHOWN
    working: int = SHOWN

    @classmethod
    def of(cls, query: Mapping[str, str]) -> View:
        """The view that an address or a form asks for."""
        kind = query.get("type", "")
        counts = (number_in(query.get(zone.lower(), "")) for zone in Zone)
        limits = [min(max(SHOWN, one), _MOST) for one in counts]
        return cls(kind if kind in BLOCK_TYPES else "", *limits)

    def limit(self, zone: Zone) -> int:
        """How many cards of a zone are shown."""
        return (self.permanent, self.stable, self.working)[[*Zone].index(zone)]

    def with_more(self, zone: Zone) -> View:
        """The view with more cards of a zone."""
        limits = (self.limit(one) + (_STEP if one is zone else 0) for one in Zone)
        return View(self.type, *limits)

    @property
    def query(self) -> str:
        """As an address has it, with its question mark."""
        return f"?{urlencode(self.kept)}" if self.kept else ""

    @property
    def kept(self) -> tuple[tuple[str, object], ...]:
        """What is chosen, for forms to send along."""
        return tuple((key, one) for key, one in self._asdict().items() if one not in ("", SHOWN))

    def at(self, session: str) -> str:
        """The address of a board that is looked at like this."""
        return f"{session_address(session)}{self.query}"


@dataclass(frozen=True, slots=True)
class Card:
    """One block as the board shows it."""

    block: Block
    title: str
    excerpt: str
    above: str  # the ids of the blocks beside it
    below: str
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Column:
    """One zone as the board shows it."""

    zone: Zone
    cards: tuple[Card, ...]
    number: int  # of blocks, shown or not
    spending: Spending
    more: str  # the address of a board with more of them


@dataclass(frozen=True, slots=True)
class TypeChoice:
    """A type that is on the board."""

    type: BlockType
    address: str
    number: int
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class BoardPage(Page):
    """The board."""

    session: Session
    columns: tuple[Column, ...]
    total: Spending
    view: View
    choices: tuple[TypeChoice, ...]
    number: int  # of blocks, of any type
    last_event: int
    problem: Problem | None  # about a block that is not shown

    @property
    def types(self) -> tuple[BlockType, ...]:
        """Every type that a person can add."""
        return tuple(BLOCK_TYPES.values())

    @property
    def address(self) -> str:
        """Where this board, looked at like this, is."""
        return self.view.at(self.session.id)


class BoardPages(DeskPages):
    """The calls of the board."""

    def show(self, visit: Visit) -> Answer:
        """The board."""
        return self._board(visit, View.of(visit.query))

    def move(self, visit: Visit) -> Answer:
        """A block elsewhere: `place` is how, beside which block, and in which zone."""
        how, beside, zone = [*visit.form.text("place").split(","), "", ""][:3]
        place = Place(
            after=beside if how == "after" else "",
            before=beside if how == "before" else "",
            first=how == "first",
        )
        version = number_in(visit.form.text("version"))
        try:
            self._desk().blocks.move(
                visit.names[1], visit.names[3], version, checked_zone(zone) if zone else None, place
            )
        except SkillhallError as error:
            return self._board(visit, _view(visit), error)
        return redirect(_view(visit).at(visit.names[1]))

    def delete(self, visit: Visit) -> Answer:
        """Remove a block; the notice brings it back."""
        session, identity = visit.names[1], visit.names[3]
        version = number_in(visit.form.text("version"))
        try:
            gone = self._desk().blocks.delete(session, identity, version)
        except SkillhallError as error:
            return self._board(visit, _view(visit), error)
        title = title_of(gone)[0] or visit.texts(f"type.{gone.content.type}")
        notice = Notice("deleted", title, f"{session}/{identity}")
        return self._site.done(_view(visit).at(session), notice)

    def bring_back(self, visit: Visit) -> Answer:
        """A deleted block, where it was."""
        block = self._desk().blocks.bring_back(visit.names[1], visit.names[3])
        title = title_of(block)[0] or visit.texts(f"type.{block.content.type}")
        place = f"{session_address(visit.names[1])}#block-{block.id}"
        return self._site.done(place, Notice("undone", title))

    def _board(self, visit: Visit, view: View, error: SkillhallError | None = None) -> Answer:
        desk, identity = self._desk(), visit.names[1]
        # The last event first: whatever comes after it is told again, never missed.
        last_event = desk.event_range()[1]
        found = desk.sessions.overview(identity)
        blocks = desk.blocks.list(identity)
        spent = spend(found.session, found.sizes)
        shown = [one for one in blocks if view.type in ("", one.content.type)]
        problem = told(visit, error)
        problems = {visit.names[3]: problem} if problem and len(visit.names) > _OF_BLOCK else {}
        columns = tuple(
            _column([one for one in shown if one.zone is zone], zone, view, spent[zone], problems)
            for zone in Zone
        )
        is_told = any(card.problem for column in columns for card in column.cards)
        page = BoardPage(
            frame_of(visit, found.session.name, "sessions"),
            session=found.session,
            columns=columns,
            total=spent[None],
            view=view,
            choices=_choices(found.session.id, view, blocks),
            number=len(blocks),
            last_event=last_event,
            problem=None if is_told else problem,
        )
        return page_answer("board.html", page, status=status_for(error))


def title_of(block: Block) -> tuple[str, str]:
    """What a block is called, and what is said below: of a skill what it tells of itself."""
    skill = block.content.skill
    if skill is not None:
        return skill.name, skill.description
    text = block.content.text[:2000].strip()
    first, _, rest = text.partition("\n")
    title = first.strip().lstrip("#").strip() or first.strip()
    excerpt = " ".join(rest[: 2 * _EXCERPT].split())
    if len(title) > _TITLE:
        cut = title[:_TITLE].rpartition(" ")[0] or title[:_TITLE]
        title, excerpt = f"{cut}…", f"{title[len(cut) :].strip()} {excerpt}"
    return title, excerpt if len(excerpt) <= _EXCERPT else f"{excerpt[:_EXCERPT].rstrip()}…"


def _column(
    blocks: Sequence[Block],
    zone: Zone,
    view: View,
    spending: Spending,
    problems: Mapping[str, Problem],
) -> Column:
    limit = view.limit(zone)
    ids = ["", *(one.id for one in blocks[: limit + 1]), ""]
    cards = tuple(
        Card(
            one,
            *title_of(one),
            above=ids[number],
            below=ids[number + 2],
            problem=problems.get(one.id),
        )
        for number, one in enumerate(blocks[:limit])
    )
    more = view.with_more(zone).at(blocks[0].session) if len(blocks) > limit else ""
    return Column(zone, cards, len(blocks), spending, more)


def _choices(session: str, view: View, blocks: Sequence[Block]) -> tuple[TypeChoice, ...]:
    counts: dict[str, int] = {}
    for block in blocks:
        counts[block.content.type] = counts.get(block.content.type, 0) + 1
    wanted = [one for one in BLOCK_TYPES.values() if one.id in counts or one.id == view.type]
    return tuple(
        TypeChoice(
            one, View(type=one.id).at(session), counts.get(one.id, 0), is_chosen=one.id == view.type
        )
        for one in wanted
    )


def _view(visit: Visit) -> View:
    """The view that a form was sent from."""
    return View.of({key: values[0] for key, values in visit.form.fields.items()})
