"""What servers share by a database: skills, uploads and tokens. Bytes are kept once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.storage.records import SharedSkill, StoredToken, StoredUpload

    Files: TypeAlias = Mapping[str, tuple[bytes, int]]  # bytes and mode by path

_T = TypeVar("_T")

# The kinds of events that tell servers what others did.
SKILL_CHANGED, SKILL_DELETED = "skill-changed", "skill-deleted"
UPLOAD_CHANGED, UPLOAD_DELETED = "upload-changed", "upload-deleted"
TOKENS_CHANGED = "tokens-changed"
REPOSITORY_CHANGED = "repository-changed"
DATABASE_RESTORED = "database-restored"  # everything may be another


class SharedReading(Protocol):
    """The skills that all servers on one database have, all of one moment."""

    def versions(self) -> Mapping[str, int]:
        """The version of each by id; a version never comes back."""

    def find(self, identity: str) -> SharedSkill | None:
        """The skill with that id."""

    def read(self, digest: str) -> bytes | None:
        """The bytes of a file."""


class SharedWriting(SharedReading, Protocol):
    """One change of all or nothing, while nobody else changes shared skills."""

    def put(self, identity: str, files: Files, origin: str) -> None:
        """Keep a skill in place of the one that is there."""

    def drop(self, identity: str) -> None:
        """Remove a skill."""


class SharedSkills(Protocol):
    """Where they are kept. Work may be done twice: only the one that is kept counts."""

    def look(self, work: Callable[[SharedReading], _T]) -> _T:
        """What the work returns. Raises: DatabaseUnavailable."""

    def change(self, work: Callable[[SharedWriting], _T], at: str) -> _T:
        """What the work returns, once its changes are kept, and told to all servers.

        Raises: DatabaseUnavailable, DatabaseFull, what the work raises; then nothing is changed.
        """


class StoredUploads(Protocol):
    """The sources of prompts that clients sent; those that nobody used longest make room."""

    def list(self) -> Sequence[StoredUpload]:
        """All of them, the last used first."""

    def find(self, source: str) -> StoredUpload | None:
        """The upload of that name, which counts as a use."""

    def read(self, digest: str) -> bytes | None:
        """The bytes of a file."""

    def put(self, source: str, files: Files, content_hash: str, at: str, keep: int) -> bool:
        """Whether it is another one than before; at most `keep` are kept.

        Raises: DatabaseUnavailable, DatabaseFull.
        """


class StoredTokens(Protocol):
    """The tokens that servers accept, by their digests."""

    def list(self) -> Sequence[StoredToken]:
        """All of them, the oldest first."""

    def add(self, token: StoredToken) -> None:
        """Keep another one. Raises: Conflict if its label is taken, DatabaseUnavailable."""

    def drop(self, name: str, at: str) -> bool:
        """Whether there was one with that id or label to remove. Raises: DatabaseUnavailable."""


class Outbox(Protocol):
    """Tells all servers of something that no table keeps."""

    def note(self, kind: str, data: Mapping[str, str | int | None], at: str) -> None:
        """Tell it. Raises: DatabaseUnavailable, DatabaseFull."""
