"""What a workspace asks of its store. One contract suite runs on every implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillhall._internal.storage.records import (
        Block,
        Content,
        Event,
        Session,
        Snapshot,
        Template,
        Zone,
        ZoneSize,
    )

_T = TypeVar("_T")


class Reading(Protocol):
    """What is there, all of one moment."""

    def session(self, identity: str) -> Session | None:
        """The session with that id."""

    def sessions(self, after: str, limit: int) -> Sequence[Session]:
        """Sessions in order of their ids, from the one after `after`."""

    def block(self, session: str, identity: str) -> Block | None:
        """The block of that session, deleted or not."""

    def blocks(
        self, session: str, zone: Zone | None = None, kind: str | None = None
    ) -> Sequence[Block]:
        """The blocks of a session that are not deleted, in order."""

    def skill_blocks(self, session: str, name: str) -> Sequence[Block]:
        """The blocks of that skill which are not deleted, in order."""

    def deleted_blocks(self, session: str) -> Sequence[Block]:
        """The blocks that can be brought back, the last deleted first."""

    def sizes(self, session: str) -> dict[Zone, ZoneSize]:
        """How much lies in each zone that is not empty."""

    def count(self, session: str) -> int:
        """How many blocks of a session are not deleted."""

    def following(self, session: str, zone: Zone, key: str) -> tuple[str, str] | None:
        """The id and position of the block after a position; of the first one for an empty key."""

    def preceding(self, session: str, zone: Zone, key: str) -> tuple[str, str] | None:
        """The id and position of the block before a position; of the last one for an empty key."""

    def keys(self, session: str, zone: Zone) -> Sequence[tuple[str, str]]:
        """The ids and positions of a zone, in order."""

    def templates(self) -> Sequence[Template]:
        """All templates by name."""

    def template(self, identity: str) -> Template | None:
        """The template with that id."""

    def template_named(self, name: str) -> Template | None:
        """The template of that name."""

    def template_contents(self, identity: str) -> Sequence[Content]:
        """What its blocks say, in order."""

    def snapshots(self, session: str) -> Sequence[Snapshot]:
        """The snapshots of a session, the newest first."""

    def snapshot(self, session: str, identity: str) -> Snapshot | None:
        """The snapshot of that session."""

    def snapshot_blocks(self, identity: str) -> Sequence[Block]:
        """The blocks as they were, in order."""

    def events(self, after: int, limit: int, session: str | None = None) -> Sequence[Event]:
        """The events that follow, in the order in which they were accepted."""

    def event_range(self) -> tuple[int, int]:
        """The numbers of the first and the last event that are kept; zeros without any."""


class Writing(Reading, Protocol):
    """One change of all or nothing."""

    def locked(self, identity: str) -> Session | None:
        """The session, which nobody else changes until this change is over."""

    def template(self, identity: str) -> Template | None:
        """The template, which nobody else changes until this change is over."""

    def add_session(self, session: Session) -> None:
        """Keep a session that was not there."""

    def save_session(self, session: Session) -> None:
        """Keep another state of a session."""

    def drop_session(self, identity: str) -> None:
        """Remove a session with all that belongs to it."""

    def add_blocks(self, blocks: Iterable[Block]) -> None:
        """Keep blocks that were not there."""

    def save_block(self, block: Block) -> None:
        """Keep another state of a block."""

    def place_blocks(self, session: str, keys: Sequence[tuple[str, str]]) -> None:
        """Give blocks of one zone other positions, by id."""

    def drop_blocks(self, session: str) -> None:
        """Remove all blocks of a session, deleted ones too."""

    def forget_deleted(self, session: str, keep: int) -> None:
        """Let go of deleted blocks but the last few."""

    def add_template(self, template: Template, contents: Sequence[Content]) -> None:
        """Keep a template that was not there."""

    def save_template(self, template: Template, contents: Sequence[Content] | None) -> None:
        """Keep another state of a template; without contents, those stay."""

    def drop_template(self, identity: str) -> None:
        """Remove a template."""

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot of the blocks that are there."""

    def restore_blocks(self, snapshot: Snapshot, version: int, at: str) -> None:
        """Put the blocks of a snapshot into their session, which has none."""

    def drop_snapshot(self, identity: str) -> None:
        """Remove a snapshot."""

    def forget_automatic(self, session: str, keep: int, spare: str) -> None:
        """Let go of automatic snapshots but the last few, and the one with the id `spare`."""

    def note(self, *events: Event) -> int:
        """Keep events; they are told once the change is kept. The number of the last one."""


class Store(Protocol):
    """Where a workspace is kept. Work may be done twice: only the one that is kept counts."""

    def read(self, work: Callable[[Reading], _T]) -> _T:
        """What the work returns. Raises: DatabaseUnavailable."""

    def write(self, work: Callable[[Writing], _T]) -> _T:
        """What the work returns, once its changes are kept: all of them, or none.

        Raises: DatabaseUnavailable, DatabaseFull, and what the work raises.
        """
