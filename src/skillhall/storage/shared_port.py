"""What servers share by a database: skills and uploads, whose bytes are kept once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from skillhall.storage.records import SharedSkill, StoredUpload

    Files: TypeAlias = Mapping[str, tuple[bytes, int]]  # bytes and mode by path

NOT_THERE = 0  # the version of what does not exist


class SharedSkills(Protocol):
    """The skills that all servers on one database have."""

    def list(self) -> Sequence[SharedSkill]:
        """All of them, in order of their ids."""

    def find(self, identity: str) -> SharedSkill | None:
        """The skill with that id."""

    def read(self, digest: str) -> bytes | None:
        """The bytes of a file."""

    def put(
        self, identity: str, files: Files, origin: str, at: str, expected: int | None = None
    ) -> SharedSkill:
        """Keep a skill in place of the one that is there.

        With `expected`, only if that is its version; `NOT_THERE` wants a free id.
        Raises: VersionConflict, DatabaseUnavailable, DatabaseFull.
        """

    def delete(self, identity: str, at: str, expected: int | None = None) -> bool:
        """Whether there was one to remove. Raises: VersionConflict, DatabaseUnavailable."""


class Uploads(Protocol):
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
