"""What a workspace asks of its store. One contract suite runs on every implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.storage.records import (
        Block,
        BlockContent,
        Event,
        Session,
        SessionSnapshot,
        SharedSkill,
        StoredToken,
        StoredUpload,
        Template,
        Zone,
        ZoneSize,
    )

    FilesByPath: TypeAlias = Mapping[str, tuple[bytes, int]]  # bytes and mode by path

_T = TypeVar("_T")


class WorkspaceReader(Protocol):
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

    def zone_sizes(self, session: str) -> dict[Zone, ZoneSize]:
        """How much lies in each zone that is not empty."""

    def count_blocks(self, session: str) -> int:
        """How many blocks of a session are not deleted."""

    def next_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        """The id and position of the block after a position; of the first one for an empty key."""

    def previous_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        """The id and position of the block before a position; of the last one for an empty key."""

    def list_positions(self, session: str, zone: Zone) -> Sequence[tuple[str, str]]:
        """The ids and positions of a zone, in order."""

    def templates(self) -> Sequence[Template]:
        """All templates by name."""

    def template(self, identity: str) -> Template | None:
        """The template with that id."""

    def find_template_by_name(self, name: str) -> Template | None:
        """The template of that name."""

    def template_contents(self, identity: str) -> Sequence[BlockContent]:
        """What its blocks say, in order."""

    def snapshots(self, session: str) -> Sequence[SessionSnapshot]:
        """The snapshots of a session, the newest first."""

    def snapshot(self, session: str, identity: str) -> SessionSnapshot | None:
        """The snapshot of that session."""

    def snapshot_blocks(self, identity: str) -> Sequence[Block]:
        """The blocks as they were, in order."""

    def events(self, after: int, limit: int, session: str | None = None) -> Sequence[Event]:
        """The events that follow, in the order in which they were accepted."""

    def event_range(self) -> tuple[int, int]:
        """The numbers of the first and the last event that are kept; zeros without any."""


class WorkspaceWriter(WorkspaceReader, Protocol):
    """One change of all or nothing."""

    def lock_session(self, identity: str) -> Session | None:
        """The session, which nobody else changes until this change is over."""

    def template(self, identity: str) -> Template | None:
        """The template, which nobody else changes until this change is over."""

    def add_session(self, session: Session) -> None:
        """Keep a session that was not there."""

    def save_session(self, session: Session) -> None:
        """Keep another state of a session."""

    def delete_session(self, identity: str) -> None:
        """Remove a session with all that belongs to it."""

    def add_blocks(self, blocks: Iterable[Block]) -> None:
        """Keep blocks that were not there."""

    def save_block(self, block: Block) -> None:
        """Keep another state of a block."""

    def set_positions(self, session: str, positions: Sequence[tuple[str, str]]) -> None:
        """Give blocks of one zone other positions, by id."""

    def delete_blocks(self, session: str) -> None:
        """Remove all blocks of a session, deleted ones too."""

    def prune_deleted_blocks(self, session: str, keep: int) -> None:
        """Let go of deleted blocks but the last few."""

    def add_template(self, template: Template, contents: Sequence[BlockContent]) -> None:
        """Keep a template that was not there."""

    def save_template(self, template: Template, contents: Sequence[BlockContent] | None) -> None:
        """Keep another state of a template; without contents, those stay."""

    def delete_template(self, identity: str) -> None:
        """Remove a template."""

    def add_snapshot(self, snapshot: SessionSnapshot) -> None:
        """Keep a snapshot of the blocks that are there."""

    def restore_blocks(self, snapshot: SessionSnapshot, version: int, at: str) -> None:
        """Put the blocks of a snapshot into their session, which has none."""

    def delete_snapshot(self, identity: str) -> None:
        """Remove a snapshot."""

    def prune_automatic_snapshots(self, session: str, keep: int, keep_id: str) -> None:
        """Let go of automatic snapshots but the last few, and the one with the id `spare`."""

    def add_events(self, *events: Event) -> int:
        """Keep events; they are told once the change is kept. The number of the last one."""


class WorkspaceStore(Protocol):
    """Where a workspace is kept. Work may be done twice: only the one that is kept counts."""

    def read(self, work: Callable[[WorkspaceReader], _T]) -> _T:
        """What the work returns. Raises: DatabaseUnavailable."""

    def write(self, work: Callable[[WorkspaceWriter], _T]) -> _T:
        """What the work returns, once its changes are kept: all of them, or none.

        Raises: DatabaseUnavailable, DatabaseFull, and what the work raises.
        """


# The kinds of events that tell servers what others did.
SKILL_CHANGED, SKILL_DELETED = "skill-changed", "skill-deleted"
UPLOAD_CHANGED, UPLOAD_DELETED = "upload-changed", "upload-deleted"
TOKENS_CHANGED = "tokens-changed"
REPOSITORY_CHANGED = "repository-changed"
DATABASE_RESTORED = "database-restored"  # everything may be another


class SharedSkillReader(Protocol):
    """The skills that all servers on one database have, all of one moment."""

    def versions(self) -> Mapping[str, int]:
        """The version of each by id; a version never comes back."""

    def find(self, identity: str) -> SharedSkill | None:
        """The skill with that id."""

    def read_blob(self, digest: str) -> bytes | None:
        """The bytes of a file."""


class SharedSkillWriter(SharedSkillReader, Protocol):
    """One change of all or nothing, while nobody else changes shared skills."""

    def put(self, identity: str, files: FilesByPath, origin: str) -> None:
        """Keep a skill in place of the one that is there."""

    def delete(self, identity: str) -> None:
        """Remove a skill."""


class SharedSkillTable(Protocol):
    """Where they are kept. Work may be done twice: only the one that is kept counts."""

    def read(self, work: Callable[[SharedSkillReader], _T]) -> _T:
        """What the work returns. Raises: DatabaseUnavailable."""

    def write(self, work: Callable[[SharedSkillWriter], _T], at: str) -> _T:
        """What the work returns, once its changes are kept, and told to all servers.

        Raises: DatabaseUnavailable, DatabaseFull, what the work raises; then nothing is changed.
        """


class UploadTable(Protocol):
    """The sources of prompts that clients sent; those that nobody used longest make room."""

    def list(self) -> Sequence[StoredUpload]:
        """All of them, the last used first."""

    def find(self, source: str) -> StoredUpload | None:
        """The upload of that name, which counts as a use."""

    def read_blob(self, digest: str) -> bytes | None:
        """The bytes of a file."""

    def put(
        self, source: str, files: FilesByPath, content_hash: str, at: str, max_uploads: int
    ) -> bool:
        """Whether it is another one than before; at most `keep` are kept.

        Raises: DatabaseUnavailable, DatabaseFull.
        """


class TokenTable(Protocol):
    """The tokens that servers accept, by their digests."""

    def list(self) -> Sequence[StoredToken]:
        """All of them, the oldest first."""

    def add(self, token: StoredToken) -> None:
        """Keep another one. Raises: Conflict if its label is taken, DatabaseUnavailable."""

    def delete(self, name: str, at: str) -> bool:
        """Whether there was one with that id or label to remove. Raises: DatabaseUnavailable."""


class Outbox(Protocol):
    """Tells all servers of something that no table keeps."""

    def publish(self, kind: str, data: Mapping[str, str | int | None], at: str) -> None:
        """Tell it. Raises: DatabaseUnavailable, DatabaseFull."""
