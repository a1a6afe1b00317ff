"""Operations on blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import Block, BlockContent, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall._internal.workspace.ordering import (
    AT_END,
    BlockPosition,
    find_position,
    positions_after,
)
from skillhall._internal.workspace.unit_of_work import (
    get_block,
    get_session,
    validate_id,
)
from skillhall._internal.workspace.validation import build_content, validate_block_type
from skillhall.errors import RecordNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.workspace.ordering import BlockPlacement
    from skillhall._internal.workspace.unit_of_work import SessionChange, UnitOfWork

BLOCK_ADDED, BLOCK_EDITED, BLOCK_MOVED = "block-added", "block-edited", "block-moved"
BLOCK_DELETED, BLOCK_RESTORED = "block-deleted", "block-brought-back"
MAX_RESTORABLE_BLOCKS = 100  # deleted blocks per session


class BlockFilter(NamedTuple):
    """Selects blocks by zone, type and text."""

    zone: Zone | None = None
    type: str | None = None
    text: str = ""  # to find in the content, or in the skill's name or description

    def matches(self, content: BlockContent) -> bool:
        """Whether the content, or its skill's name or description, contains the text.

        Case is ignored. Zone and type are not compared; `Blocks.list` filters by them in its query.
        """
        if not self.text:
            return True
        skill = content.skill
        texts = (content.text, *((skill.name, skill.description) if skill else ()))
        needle = self.text.casefold()
        return any(needle in text.casefold() for text in texts)


ALL_BLOCKS = BlockFilter()


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of all sessions."""

    unit_of_work: UnitOfWork

    def list(self, session: str, block_filter: BlockFilter = ALL_BLOCKS) -> list[Block]:
        """Return the blocks in the order of the compiled context. Raises: RecordNotFound."""
        zone, kind, _ = block_filter
        blocks = self.unit_of_work.store.read(
            lambda read: read.blocks(get_session(read, session).id, zone, kind)
        )
        return [block for block in blocks if block_filter.matches(block.content)]

    def find(self, session: str, identity: str) -> Block:
        """Return a block. Raises: RecordNotFound."""
        return self.unit_of_work.store.read(lambda read: get_block(read, session, identity))

    def list_deleted(self, session: str) -> Sequence[Block]:
        """Return the blocks that can be restored, last deleted first.

        Raises: RecordNotFound.
        """
        return self.unit_of_work.store.read(
            lambda read: read.deleted_blocks(get_session(read, session).id)
        )

    def add(
        self,
        session: str,
        kind: str,
        text: str,
        zone: Zone | None = None,
        placement: BlockPlacement = AT_END,
    ) -> Block:
        """Add a block; without a zone, it goes to the default zone of its type.

        Raises: RecordNotFound, BlockMovedError, FieldRefused, TextRefused, TooLarge.
        """
        content = build_content(validate_block_type(kind), zone or BLOCK_TYPES[kind].zone, text)

        def work(change: SessionChange) -> Block:
            change.check_block_limit(1)
            slot = find_position(change, content.zone, placement)
            block = _create_block(change, content, slot.position)
            change.writer.add_blocks([block])
            change.add_event(BLOCK_ADDED, block.id, zone=content.zone, after=slot.after)
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
        """Change the text or the type of a block.

        Raises: RecordNotFound, VersionConflict, FieldRefused, TextRefused, TooLarge.
        """
        new_type = None if kind is None else validate_block_type(kind)
        # Checked and measured before the transaction, which should be short. Type and zone of `new`
        # are not used.
        new = None if text is None else build_content("note", Zone.WORKING, text)

        def work(change: SessionChange) -> Block:
            block = change.get_block(identity, version)
            content = replace(block.content, type=new_type or block.content.type)
            if new is not None:
                content = replace(content, text=new.text, tokens=new.tokens)
            edited = change.save_block(replace(block, content=content))
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
        """Move a block within its zone or to another zone.

        Raises: RecordNotFound, VersionConflict, BlockMovedError, FieldRefused.
        """

        def work(change: SessionChange) -> Block:
            block = change.get_block(identity, version)
            target = zone or block.zone
            slot = find_position(change, target, placement, moved_id=identity)
            content = replace(block.content, zone=target)
            moved = change.save_block(replace(block, content=content, position=slot.position))
            change.add_event(BLOCK_MOVED, identity, zone=target, after=slot.after)
            return moved

        return self.unit_of_work.change_session(session, work)

    def delete(self, session: str, identity: str, version: int) -> Block:
        """Delete a block; it can be restored. Raises: RecordNotFound, VersionConflict."""

        def work(change: SessionChange) -> Block:
            block = change.get_block(identity, version)
            deleted = change.save_block(replace(block, deleted=change.revision))
            change.writer.prune_deleted_blocks(session, MAX_RESTORABLE_BLOCKS)
            change.add_event(BLOCK_DELETED, identity)
            return deleted

        return self.unit_of_work.change_session(session, work)

    def restore(self, session: str, identity: str) -> Block:
        """Restore a block at its former position. Raises: RecordNotFound, TooLarge."""

        def work(change: SessionChange) -> Block:
            block = change.writer.block(session, validate_id("block", identity))
            if block is None or block.deleted is None:
                raise RecordNotFound("deleted block", identity)
            change.check_block_limit(1)
            slot = _find_former_position(change, block)
            restored = change.save_block(replace(block, deleted=None, position=slot.position))
            change.add_event(BLOCK_RESTORED, identity, zone=restored.zone, after=slot.after)
            return restored

        return self.unit_of_work.change_session(session, work)


def append_contents(change: SessionChange, contents: Iterable[BlockContent]) -> list[Block]:
    """Add blocks at the ends of their zones, in order. Raises: TooLarge."""
    by_zone: dict[Zone, list[BlockContent]] = {}
    for content in contents:
        by_zone.setdefault(content.zone, []).append(content)
    change.check_block_limit(sum(map(len, by_zone.values())))
    blocks: list[Block] = []
    for zone, group in by_zone.items():
        last = change.writer.previous_position(change.session.id, zone, "")
        positions = positions_after(last[1] if last else "", len(group))
        blocks += map(partial(_create_block, change), group, positions)
    change.writer.add_blocks(blocks)
    return blocks


def _create_block(change: SessionChange, content: BlockContent, position: str) -> Block:
    return Block(
        id=change.new_id(),
        session=change.session.id,
        position=position,
        content=content,
        version=change.revision,
        created=change.at,
        updated=change.at,
    )


def _find_former_position(change: SessionChange, block: Block) -> BlockPosition:
    """Return the position of a deleted block, or the next free one if it is taken."""
    session, zone = change.session.id, block.zone
    before = change.writer.previous_position(session, zone, block.position)
    following = change.writer.next_position(session, zone, before[1] if before else "")
    if following is None or following[1] != block.position:
        return BlockPosition(block.position, before[0] if before else "")
    return find_position(change, zone, AT_END._replace(after=following[0]))
