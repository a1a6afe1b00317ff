"""The pages that write blocks: a new one, or other words for one that is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.skill.edit import plain_lines
from skillhall._internal.skill_store.version_diff import compare_texts
from skillhall._internal.web.rendering import Page, frame_of, page_answer, redirect
from skillhall._internal.web.sessions.board_pages import title_of
from skillhall._internal.web.sessions.page_base import (
    DeskPages,
    number_in,
    session_address,
    status_for,
    told,
)
from skillhall._internal.web.skills.edit_pages import Clash
from skillhall._internal.workspace import Block, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES, SKILL
from skillhall._internal.workspace.validation import checked_zone, make_content
from skillhall.errors import RecordNotFound, SkillhallError, VersionConflict

if TYPE_CHECKING:
    from markupsafe import Markup

    from skillhall._internal.http.response import Answer
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Problem
    from skillhall._internal.workspace import Session
    from skillhall._internal.workspace.block_types import BlockType

NEW = "new"  # in place of a block's id


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
    clash: Clash | None
    problem: Problem | None

    @property
    def types(self) -> tuple[BlockType, ...]:
        """What it can be."""
        return tuple(BLOCK_TYPES.values())

    @property
    def zones(self) -> tuple[Zone, ...]:
        """Where it can go."""
        return tuple(Zone)


@dataclass(frozen=True, slots=True)
class _Draft:
    """What stands in the form."""

    type: str
    zone: str
    text: str
    version: int = 0


class BlockPages(DeskPages):
    """The calls of these pages."""

    def show_new(self, visit: Visit) -> Answer:
        """An empty form for a type."""
        kind = visit.query.get("type", "note")
        known = BLOCK_TYPES.get(kind, BLOCK_TYPES["note"])
        return self._page(visit, _Draft(known.id, known.zone, ""))

    def add(self, visit: Visit) -> Answer:
        """Write a new block."""
        draft = _sent(visit)
        try:
            zone = checked_zone(draft.zone) if draft.zone else None
            made = self._desk().blocks.add(visit.names[1], draft.type, draft.text, zone)
        except SkillhallError as error:
            return self._page(visit, draft, None, error)
        return redirect(f"{session_address(visit.names[1])}#block-{made.id}")

    def check(self, visit: Visit) -> Answer:
        """The form with how its text reads; nothing is written."""
        identity = visit.names[3] if len(visit.names) > 4 else NEW  # noqa: PLR2004 - a block's path
        block = None if identity == NEW else self._desk().blocks.find(visit.names[1], identity)
        return self._page(visit, _sent(visit), block)

    def show_edit(self, visit: Visit) -> Answer:
        """The form with a block's own words."""
        block = self._desk().blocks.find(visit.names[1], visit.names[3])
        content = block.content
        draft = _Draft(content.type, content.zone, content.text, block.version)
        return self._page(visit, draft, block)

    def edit(self, visit: Visit) -> Answer:
        """Change a block, unless somebody else did since the form was opened."""
        session, identity, draft = visit.names[1], visit.names[3], _sent(visit)
        try:
            self._desk().blocks.edit(
                session, identity, draft.version, text=draft.text, kind=draft.type
            )
        except VersionConflict as error:
            return self._page(visit, draft, error.current, error)
        except RecordNotFound as error:
            return self._page(visit, draft, None, error)
        except SkillhallError as error:
            return self._page(visit, draft, self._desk().blocks.find(session, identity), error)
        return redirect(f"{session_address(session)}#block-{identity}")

    def _page(
        self,
        visit: Visit,
        draft: _Draft,
        block: object = None,
        error: SkillhallError | None = None,
    ) -> Answer:
        session = self._desk().sessions.find(visit.names[1])
        present = block if isinstance(block, Block) else None
        base = session_address(session.id)
        # A block that is gone is written anew: nothing that somebody wrote is lost.
        key = present.id if present else NEW
        page = BlockPage(
            frame_of(visit, _title(visit, present), "sessions"),
            session=session,
            key=key,
            action=f"{base}/blocks/{key}/edit" if present else f"{base}/add",
            type=draft.type if draft.type in BLOCK_TYPES else "note",
            zone=draft.zone,
            text=draft.text,
            version=_version(draft, error),
            block=present,
            preview=self._site.markdown.render(draft.text, base),
            tokens=_tokens(draft.text),
            clash=_clash(present, draft, error),
            problem=told(visit, error),
        )
        return page_answer("block.html", page, status=status_for(error))


def _tokens(text: str) -> int:
    try:
        return make_content(SKILL, Zone.WORKING, text).tokens
    except SkillhallError:  # saving it tells why
        return 0


def _title(visit: Visit, block: Block | None) -> str:
    if block is None:
        return visit.texts("block.title_new")
    called = title_of(block)[0] or visit.texts(f"type.{block.content.type}")
    return visit.texts("block.title_edit", name=called)


def _version(draft: _Draft, error: SkillhallError | None) -> int:
    """The version that the next change is made against: whoever was shown it, knows it."""
    return error.version if isinstance(error, VersionConflict) else draft.version


def _clash(block: Block | None, draft: _Draft, error: SkillhallError | None) -> Clash | None:
    if block is None or not isinstance(error, VersionConflict):
        return None
    theirs = block.content.text
    return Clash(theirs, draft.text, compare_texts(theirs, draft.text))


def _sent(visit: Visit) -> _Draft:
    form = visit.form
    return _Draft(
        form.text("type"),
        form.text("zone"),
        plain_lines(form.text("text")),
        number_in(form.text("version")),
    )
