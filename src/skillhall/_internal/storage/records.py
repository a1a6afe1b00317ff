"""What the database keeps, as values: sessions, blocks, templates, snapshots, events, files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Zone(StrEnum):
    """Where a block lies. The order of the names is the order in which a model reads the zones."""

    PERMANENT = "PERMANENT"
    STABLE = "STABLE"
    WORKING = "WORKING"


@dataclass(frozen=True, slots=True)
class SessionBudgets:
    """How many tokens a session means to spend; nothing means no limit."""

    permanent: int | None = None
    stable: int | None = None
    working: int | None = None
    total: int | None = None

    def for_zone(self, zone: Zone) -> int | None:
        """The budget of one zone."""
        return {
            Zone.PERMANENT: self.permanent,
            Zone.STABLE: self.stable,
            Zone.WORKING: self.working,
        }[zone]


@dataclass(frozen=True, slots=True)
class Session:
    """A desk of blocks.

    `revision` counts every change in it. A version is the revision of the last change of the thing
    that has it: it never comes back, whatever is restored.
    """

    id: str
    name: str
    budgets: SessionBudgets
    version: int
    revision: int
    created: str
    updated: str


@dataclass(frozen=True, slots=True)
class SkillOrigin:
    """The skill that a block was imported from."""

    name: str
    description: str
    source_type: str  # local, upload or url
    source_ref: str


@dataclass(frozen=True, slots=True)
class BlockContent:
    """What a block says, wherever it lies."""

    type: str
    zone: Zone
    text: str
    tokens: int  # an estimate
    skill: SkillOrigin | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of context in a session."""

    id: str
    session: str
    position: str  # orders the blocks of a zone
    content: BlockContent
    version: int
    created: str
    updated: str
    deleted: int | None = None  # the revision that deleted it, while that can be taken back

    @property
    def zone(self) -> Zone:
        """Where it lies."""
        return self.content.zone


@dataclass(frozen=True, slots=True)
class ZoneSize:
    """How much lies in a zone."""

    blocks: int = 0
    tokens: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Template:
    """A saved arrangement of blocks that starts a session; its contents are kept beside it."""

    id: str
    name: str
    description: str
    budgets: SessionBudgets
    version: int
    created: str
    updated: str


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """A session as it was; its blocks are kept beside it."""

    id: str
    session: str
    name: str
    budgets: SessionBudgets
    revision: int
    created: str
    automatic: bool  # made by us, before blocks were replaced


@dataclass(frozen=True, slots=True)
class Event:
    """A change that was accepted: what happened to which thing, never what it says.

    `seq` orders all events of a database; it is 0 until the event is kept.
    """

    kind: str
    subject: str
    session: str  # "" where no session is concerned
    revision: int
    data: Mapping[str, str | int | None]
    at: str
    seq: int = 0


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a skill or an upload: its bytes are found by the digest."""

    digest: str
    size: int
    mode: int


@dataclass(frozen=True, slots=True)
class SharedSkill:
    """A skill that all servers on one database have."""

    id: str
    origin: str
    version: int
    files: Mapping[str, StoredFile]
    updated: str


@dataclass(frozen=True, slots=True)
class StoredUpload:
    """A source of prompts that a client sent."""

    source: str
    content_hash: str
    files: Mapping[str, StoredFile]
    used: int  # a number that grows with each use, of any upload
    updated: str


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token that servers accept; only its digest is kept."""

    id: str
    label: str
    digest: str  # SHA-256, in hexadecimal
    created: str
