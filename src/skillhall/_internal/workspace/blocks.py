"""The verbs on blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import Block, Content, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall._internal.workspace.ordering import END, after_each_other, find_spot
from skillhall._internal.workspace.unit_of_work import compare, found_block, found_session, known_id
from skillhall._internal.workspace.validation import checked_type, make_content
from skillhall.errors import RecordNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.storage.ports import Reading
    from skillhall._internal.workspace.ordering import Place
    from skillhall._internal.workspace.unit_of_work import Change, Desk

ADDED, EDITED, MOVED = "block-added", "block-edited", "block-moved"
DELETED, BROUGHT_BACK = "block-deleted", "block-brought-back"
KEPT_DELETED = 100  # blocks of a session whose deletion can be taken back


class Filter(NamedTuple):
    """Which blocks are wanted."""

    zone: Zone | None = None
    type: str | None = None
    text: str = ""  # in whatever they say, or in a skill's name or description

    def takes(self, content: Content) -> bool:
        """Whether the text is found, in any case."""
        if not self.text:
            return True
        skill = content.skill
        texts = (content.text, *((skill.name, skill.description) if skill else ()))
        wanted = self.text.casefold()
        return any(wanted in text.casefold() for text in texts)


EVERY = Filter()


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of any session."""

    desk: Desk

    def list(self, session: str, wanted: Filter = EVERY) -> list[Block]:
        """The blocks in the order in which a model reads them. Raises: RecordNotFound."""

        def work(read: Reading) -> Sequence[Block]:
            found_session(read, session)
            return read.blocks(session, wanted.zone, wanted.type)

        return [one for one in self.desk.store.read(work) if wanted.takes(one.content)]

    def find(self, session: str, identity: str) -> Block:
        """One block. Raises: RecordNotFound."""
        return self.desk.store.read(lambda read: found_block(read, session, identity))

    def deleted(self, session: str) -> Sequence[Block]:
        """The blocks that can be brought back, the last deleted first. Raises: RecordNotFound."""

        def work(read: Reading) -> Sequence[Block]:
            found_session(read, session)
            return read.deleted_blocks(session)

        return self.desk.store.read(work)

    def add(
        self, session: str, kind: str, text: str, zone: Zone | None = None, place: Place = END
    ) -> Block:
        """A new block; without a zone, it goes where blocks of its type belong.

        Raises: RecordNotFound, Displaced, FieldRefused, TextRefused, TooLarge.
        """
        content = make_content(checked_type(kind), zone or BLOCK_TYPES[kind].zone, text)

        def work(change: Change) -> Block:
            change.refuse_too_many(1)
            spot = find_spot(change, content.zone, place)
            block = _made(self.desk, change, content, spot.position)
            change.write.add_blocks([block])
            change.note(ADDED, block.id, zone=content.zone, after=spot.after)
            return block

        return self.desk.change(session, work)

    def edit(
        self,
        session: str,
        identity: str,
        version: int,
        *,
        text: str | None = None,
        kind: str | None = None,
    ) -> Block:
        """A block that says something else, or is of another type.

        Raises: RecordNotFound, VersionConflict, FieldRefused, TextRefused, TooLarge.
        """
        chosen = None if kind is None else checked_type(kind)
        if text is not None:
            make_content("note", Zone.WORKING, text)

        def work(change: Change) -> Block:
            block = found_block(change.write, session, identity)
            compare("block", identity, version, block.version, block)
            old = block.content
            said = old.text if text is None else text
            content = make_content(chosen or old.type, old.zone, said, old.skill)
            edited = touched(change, block, content)
            change.write.save_block(edited)
            change.note(EDITED, identity, version=edited.version)
            return edited

        return self.desk.change(session, work)

    def move(
        self, session: str, identity: str, version: int, zone: Zone | None, place: Place = END
    ) -> Block:
        """A block at another place, of its zone or of another one.

        Raises: RecordNotFound, VersionConflict, Displaced, FieldRefused.
        """

        def work(change: Change) -> Block:
            block = found_block(change.write, session, identity)
            compare("block", identity, version, block.version, block)
            goal = zone or block.zone
            spot = find_spot(change, goal, place, moving=identity)
            content = replace(block.content, zone=goal)
            moved = replace(touched(change, block, content), position=spot.position)
            change.write.save_block(moved)
            change.note(MOVED, identity, zone=goal, after=spot.after)
            return moved

        return self.desk.change(session, work)

    def delete(self, session: str, identity: str, version: int) -> Block:
        """Remove a block; it can be brought back. Raises: RecordNotFound, VersionConflict."""

        def work(change: Change) -> Block:
            block = found_block(change.write, session, identity)
            compare("block", identity, version, block.version, block)
            gone = replace(touched(change, block, block.content), deleted=change.revision)
            change.write.save_block(gone)
            change.write.forget_deleted(session, KEPT_DELETED)
            change.note(DELETED, identity)
            return gone

        return self.desk.change(session, work)

    def bring_back(self, session: str, identity: str) -> Block:
        """A deleted block, where it was. Raises: RecordNotFound, TooLarge."""

        def work(change: Change) -> Block:
            block = change.write.block(session, known_id("block", identity))
            if block is None or block.deleted is None:
                raise RecordNotFound("deleted block", identity)
            change.refuse_too_many(1)
            spot = _former_spot(change, block)
            back = replace(touched(change, block, block.content), deleted=None, position=spot[1])
            change.write.save_block(back)
            change.note(BROUGHT_BACK, identity, zone=back.zone, after=spot[0])
            return back

        return self.desk.change(session, work)


def append_contents(desk: Desk, change: Change, contents: Iterable[Content]) -> list[Block]:
    """New blocks at the ends of their zones, in order. Raises: TooLarge."""
    wanted = [*contents]
    change.refuse_too_many(len(wanted))
    by_zone: dict[Zone, list[Content]] = {}
    for content in wanted:
        by_zone.setdefault(content.zone, []).append(content)
    blocks: list[Block] = []
    for zone, some in by_zone.items():
        last = change.write.preceding(change.session.id, zone, "")
        keys = after_each_other(last[1] if last else "", len(some))
        made = zip(some, keys, strict=True)
        blocks += [_made(desk, change, content, key) for content, key in made]
    change.write.add_blocks(blocks)
    return blocks


def touched(change: Change, block: Block, content: Content) -> Block:
    """The block with another content, as a change leaves it."""
    return replace(block, content=content, version=change.revision, updated=change.at)


def _made(desk: Desk, change: Change, content: Content, position: str) -> Block:
    return Block(
        id=desk.new_id(),
        session=change.session.id,
        position=position,
        content=content,
        version=change.revision,
        created=change.at,
        updated=change.at,
    )


def _former_spot(change: Change, block: Block) -> tuple[str, str]:
    """Which block stands before the old place, and its position; a taken one moves it on."""
    session, zone = change.session.id, block.zone
    before = change.write.preceding(session, zone, block.position)
    following = change.write.following(session, zone, before[1] if before else "")
    if following is None or following[1] != block.position:
        return (before[0] if before else ""), block.position
    place = find_spot(change, zone, END._replace(after=following[0]))
    return place.after, place.position
