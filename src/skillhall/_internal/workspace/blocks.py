"""The verbs on blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import Block, BlockContent, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall._internal.workspace.ordering import AT_END, find_position, positions_after
from skillhall._internal.workspace.unit_of_work import (
    check_version,
    get_block,
    get_session,
    validate_id,
)
from skillhall._internal.workspace.validation import build_content, validate_block_type
from skillhall.errors import RecordNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.storage.ports import WorkspaceReader
    from skillhall._internal.workspace.ordering import BlockPlacement
    from skillhall._internal.workspace.unit_of_work import SessionChange, UnitOfWork

BLOCK_ADDED, BLOCK_EDITED, BLOCK_MOVED = "block-added", "block-edited", "block-moved"
BLOCK_DELETED, BLOCK_RESTORED = "block-deleted", "block-brought-back"
MAX_RESTORABLE_BLOCKS = 100  # blocks of a session whose deletion can be taken back


class BlockFilter(NamedTuple):
    """Which blocks are wanted."""

    zone: Zone | None = None
    type: str | None = None
    text: str = ""  # in whatever they say, or in a skill's name or description

    def matches(self, content: BlockContent) -> bool:
        """Whether the text is found, in any case."""
        if not self.text:
            return True
        skill = content.skill
        texts = (content.text, *((skill.name, skill.description) if skill else ()))
        wanted = self.text.casefold()
        return any(wanted in text.casefold() for text in texts)


ALL_BLOCKS = BlockFilter()


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of any session."""

    unit_of_work: UnitOfWork

    def list(self, session: str, block_filter: BlockFilter = ALL_BLOCKS) -> list[Block]:
        """The blocks in the order in which a model reads them. Raises: RecordNotFound."""

        def work(read: WorkspaceReader) -> Sequence[Block]:
            get_session(read, session)
            return read.blocks(session, block_filter.zone, block_filter.type)

        return [
            one for one in self.unit_of_work.store.read(work) if block_filter.matches(one.content)
        ]

    def find(self, session: str, identity: str) -> Block:
        """One block. Raises: RecordNotFound."""
        return self.unit_of_work.store.read(lambda read: get_block(read, session, identity))

    def list_deleted(self, session: str) -> Sequence[Block]:
        """The blocks that can be brought back, the last deleted first. Raises: RecordNotFound."""

        def work(read: WorkspaceReader) -> Sequence[Block]:
            get_session(read, session)
            return read.deleted_blocks(session)

        return self.unit_of_work.store.read(work)

    def add(
        self,
        session: str,
        kind: str,
        text: str,
        zone: Zone | None = None,
        placement: BlockPlacement = AT_END,
    ) -> Block:
        """A new block; without a zone, it goes where blocks of its type belong.

        Raises: RecordNotFound, BlockMovedError, FieldRefused, TextRefused, TooLarge.
        """
        content = build_content(validate_block_type(kind), zone or BLOCK_TYPES[kind].zone, text)

        def work(change: SessionChange) -> Block:
            change.check_block_limit(1)
            spot = find_position(change, content.zone, placement)
            block = _create_block(self.unit_of_work, change, content, spot.position)
            change.writer.add_blocks([block])
            change.add_event(BLOCK_ADDED, block.id, zone=content.zone, after=spot.after)
            return block

        return self.unit_of_work.change_session(session, work)

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
        chosen = None if kind is None else validate_block_type(kind)
        if text is not None:
            build_content("note", Zone.WORKING, text)

        def work(change: SessionChange) -> Block:
            block = get_block(change.writer, session, identity)
            check_version("block", identity, version, block.version, block)
            old = block.content
            said = old.text if text is None else text
            content = build_content(chosen or old.type, old.zone, said, old.skill)
            edited = update_content(change, block, content)
            change.writer.save_block(edited)
            change.add_event(BLOCK_EDITED, identity, version=edited.version)
            return edited

        return self.unit_of_work.change_session(session, work)

    def move(
        self,
        session: str,
        identity: str,
        version: int,
        zone: Zone | None,
        placement: BlockPlacement = AT_END,
    ) -> Block:
        """A block at another place, of its zone or of another one.

        Raises: RecordNotFound, VersionConflict, BlockMovedError, FieldRefused.
        """

        def work(change: SessionChange) -> Block:
            block = get_block(change.writer, session, identity)
            check_version("block", identity, version, block.version, block)
            goal = zone or block.zone
            spot = find_position(change, goal, placement, moved_id=identity)
            content = replace(block.content, zone=goal)
            moved = replace(update_content(change, block, content), position=spot.position)
            change.writer.save_block(moved)
            change.add_event(BLOCK_MOVED, identity, zone=goal, after=spot.after)
            return moved

        return self.unit_of_work.change_session(session, work)

    def delete(self, session: str, identity: str, version: int) -> Block:
        """Remove a block; it can be brought back. Raises: RecordNotFound, VersionConflict."""

        def work(change: SessionChange) -> Block:
            block = get_block(change.writer, session, identity)
            check_version("block", identity, version, block.version, block)
            gone = replace(update_content(change, block, block.content), deleted=change.revision)
            change.writer.save_block(gone)
            change.writer.prune_deleted_blocks(session, MAX_RESTORABLE_BLOCKS)
            change.add_event(BLOCK_DELETED, identity)
            return gone

        return self.unit_of_work.change_session(session, work)

    def restore(self, session: str, identity: str) -> Block:
        """A deleted block, where it was. Raises: RecordNotFound, TooLarge."""

        def work(change: SessionChange) -> Block:
            block = change.writer.block(session, validate_id("block", identity))
            if block is None or block.deleted is None:
                raise RecordNotFound("deleted block", identity)
            change.check_block_limit(1)
            spot = _find_former_position(change, block)
            back = replace(
                update_content(change, block, block.content), deleted=None, position=spot[1]
            )
            change.writer.save_block(back)
            change.add_event(BLOCK_RESTORED, identity, zone=back.zone, after=spot[0])
            return back

        return self.unit_of_work.change_session(session, work)


def append_contents(
    unit_of_work: UnitOfWork, change: SessionChange, contents: Iterable[BlockContent]
) -> list[Block]:
    """New blocks at the ends of their zones, in order. Raises: TooLarge."""
    wanted = [*contents]
    change.check_block_limit(len(wanted))
    by_zone: dict[Zone, list[BlockContent]] = {}
    for content in wanted:
        by_zone.setdefault(content.zone, []).append(content)
    blocks: list[Block] = []
    for zone, some in by_zone.items():
        last = change.writer.previous_position(change.session.id, zone, "")
        keys = positions_after(last[1] if last else "", len(some))
        made = zip(some, keys, strict=True)
        blocks += [_create_block(unit_of_work, change, content, key) for content, key in made]
    change.writer.add_blocks(blocks)
    return blocks


def update_content(change: SessionChange, block: Block, content: BlockContent) -> Block:
    """The block with another content, as a change leaves it."""
    return replace(block, content=content, version=change.revision, updated=change.at)


def _create_block(
    unit_of_work: UnitOfWork, change: SessionChange, content: BlockContent, position: str
) -> Block:
    return Block(
        id=unit_of_work.new_id(),
        session=change.session.id,
        position=position,
        content=content,
        version=change.revision,
        created=change.at,
        updated=change.at,
    )


def _find_former_position(change: SessionChange, block: Block) -> tuple[str, str]:
    """Which block stands before the old place, and its position; a taken one moves it on."""
    session, zone = change.session.id, block.zone
    before = change.writer.previous_position(session, zone, block.position)
    following = change.writer.next_position(session, zone, before[1] if before else "")
    if following is None or following[1] != block.position:
        return (before[0] if before else ""), block.position
    place = find_position(change, zone, AT_END._replace(after=following[0]))
    return place.after, place.position
