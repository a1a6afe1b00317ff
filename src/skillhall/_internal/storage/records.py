"""Records of the database: sessions, blocks, templates, snapshots, events, files."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from skillhall._internal.policy.access.access_scopes import DEFAULT_SCOPES, OPERATOR
from skillhall._internal.policy.access.actor import USER_OWNER_PREFIX
from skillhall._internal.policy.trust.version_states import VersionState, VersionVerb
from skillhall._internal.skill.bundle import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    FilesByPath: TypeAlias = Mapping[str, tuple[bytes, int]]  # bytes and mode by path

# Kinds of events between servers.
SKILL_CHANGED, SKILL_DELETED = "skill-changed", "skill-deleted"
VERSION_CHANGED = "version-changed"  # a draft or the state of a version, not what is served
UPLOAD_CHANGED, UPLOAD_DELETED = "upload-changed", "upload-deleted"
TOKENS_CHANGED = "tokens-changed"  # or sign-ins or users
REVOCATIONS_CHANGED = "revocations-changed"
SETTINGS_CHANGED = "settings-changed"
REPOSITORY_CHANGED = "repository-changed"
DATABASE_RESTORED = "database-restored"  # everything may have changed

MAX_BUDGET = 1_000_000_000  # tokens
USE_INTERVAL = 60  # seconds between two stored uses of a token or sign-in


class Zone(StrEnum):
    """Part of a session, in the order in which a model reads the zones.

    Queries sort by name, so the names are in alphabetical order.
    """

    PERMANENT = "PERMANENT"
    STABLE = "STABLE"
    WORKING = "WORKING"


@dataclass(frozen=True, slots=True)
class SessionBudgets:
    """Token budgets of a session; None means no limit."""

    permanent: int | None = None
    stable: int | None = None
    working: int | None = None
    total: int | None = None

    def for_zone(self, zone: Zone) -> int | None:
        """Return the budget of one zone."""
        budget: int | None = getattr(self, zone.lower())
        return budget


@dataclass(frozen=True, slots=True)
class Session:
    """Session: an ordered set of blocks.

    `revision` increases with every change in the session. The `version` of a session or block is
    the revision of its last change. It is never reused, even after a restore.
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
    """Skill that a block was imported from."""

    name: str
    description: str
    source_type: str  # local, upload or url
    source_ref: str


@dataclass(frozen=True, slots=True)
class BlockContent:
    """Content of a block."""

    type: str
    zone: Zone
    text: str
    tokens: int  # an estimate
    skill: SkillOrigin | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Piece of context in a session."""

    id: str
    session: str
    position: str  # orders the blocks of a zone
    content: BlockContent
    version: int
    created: str
    updated: str
    deleted: int | None = None  # the revision that deleted it, while it can be restored

    @property
    def zone(self) -> Zone:
        """Zone of the block."""
        return self.content.zone


@dataclass(frozen=True, slots=True)
class ZoneSize:
    """Size of a zone."""

    blocks: int = 0
    tokens: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Template:
    """Saved arrangement of blocks for sessions; its contents are stored separately."""

    id: str
    name: str
    description: str
    budgets: SessionBudgets
    version: int
    created: str
    updated: str


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """Saved state of a session; its blocks are stored separately."""

    id: str
    session: str
    name: str
    budgets: SessionBudgets
    revision: int
    created: str
    automatic: bool  # created before blocks were replaced


@dataclass(frozen=True, slots=True)
class Event:
    """Committed change: its kind and the record concerned, but not the content.

    `seq` orders all events of a database; it is 0 until the event is stored.
    """

    kind: str
    subject: str  # id of the record, or ""
    session: str  # "" if no session is concerned
    revision: int
    data: Mapping[str, str | int | None]
    at: str
    seq: int = 0


@dataclass(frozen=True, slots=True)
class StoredFile:
    """File of a skill or an upload; its bytes are stored by digest."""

    digest: str
    size: int
    mode: int


def parse_time(text: str) -> int:
    """Convert a stored time to nanoseconds since 1970; 0 if it is invalid.

    Fractions of a second are dropped.
    """
    try:
        return int(datetime.fromisoformat(text).timestamp()) * 1_000_000_000
    except ValueError:  # a database that was edited by hand
        return 0


@dataclass(frozen=True, slots=True)
class SharedSkill:
    """Skill shared by all servers of one database."""

    id: str
    origin: str
    version: int
    files: Mapping[str, StoredFile]
    updated: str
    times: Mapping[str, int] = field(default_factory=dict)  # of files that were restored

    def modified(self, path: str) -> int:
        """Return when a file was modified, in nanoseconds since 1970.

        The result is the same on all servers.
        """
        return self.times[path] if path in self.times else parse_time(self.updated)


@dataclass(frozen=True, slots=True)
class SkillVersion:
    """Version of a skill; its files are stored separately. Only the state ever changes."""

    skill: str
    number: int
    digest: str
    state: VersionState
    note: str
    source: str  # where it was imported from; "" if it was written here
    commit: str
    signer: str
    author: str  # name of the actor; "" if it was found in a folder
    created: str


@dataclass(frozen=True, slots=True)
class DeletedSkill:
    """Skill in the bin, and the version that is restored."""

    skill: str
    number: int
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class VersionReview:
    """A decision about a version, and the digest that was reviewed."""

    skill: str
    number: int
    ordinal: int
    decision: VersionVerb
    by: str
    at: str
    comment: str
    digest: str


@dataclass(frozen=True, slots=True)
class StoredUpload:
    """Uploaded source of prompts."""

    source: str
    content_hash: str
    files: Mapping[str, StoredFile]
    used: int  # number of the last use; higher means more recent
    updated: str


@dataclass(frozen=True, slots=True)
class StoredToken:
    """Access token; only its digest is stored. Times are in ISO 8601, in UTC."""

    id: str
    label: str
    digest: str  # SHA-256, in hexadecimal; "" once the token is revoked
    created: str
    owner: str = OPERATOR
    scopes: tuple[str, ...] = DEFAULT_SCOPES
    expires: str | None = None
    used: str | None = field(default=None, compare=False)  # accurate to a minute
    revoked: str | None = None
    user: str | None = None  # id of the owner, if the owner is a user

    def is_expired(self, now: float) -> bool:
        """Whether the token has expired; `now` is in seconds since 1970."""
        return has_passed(self.expires, now)


@dataclass(frozen=True, slots=True)
class StoredUser:
    """Account of a user. Times are in ISO 8601, in UTC."""

    id: str
    name: str
    display: str
    role: str
    created: str
    issuer: str = ""  # of the identity provider; "" for a local account
    subject: str = ""  # id of the user at the identity provider
    password: str = field(default="", repr=False)  # hash; "" if the user has none
    disabled: str | None = None
    used: str | None = field(default=None, compare=False)  # accurate to a minute

    @property
    def digest(self) -> str:
        """SHA-256 of the name, by which a cache finds the user."""
        return sha256_hex(self.name.encode("utf-8", "surrogatepass"))

    @property
    def expires(self) -> None:
        """Users do not expire."""


@dataclass(frozen=True, slots=True)
class UserLink:
    """Link where a user sets a password; only the digest of its code is stored."""

    digest: str
    user: str  # id
    created: str
    expires: str


@dataclass(frozen=True, slots=True)
class SignIn:
    """Sign-in of a browser; only the digest of its cookie is stored."""

    id: str
    digest: str  # SHA-256, in hexadecimal
    token: str  # id of the token that was used; of the user if none was, see `USER_OWNER_PREFIX`
    created: str
    used: str = field(compare=False)  # accurate to a minute
    expires: str
    address: str
    agent: str  # User-Agent header

    @property
    def user(self) -> str | None:
        """Id of the user who signed in with a password or at an identity provider."""
        is_user = self.token.startswith(USER_OWNER_PREFIX)
        return self.token.removeprefix(USER_OWNER_PREFIX) if is_user else None

    def is_expired(self, now: float) -> bool:
        """Whether the sign-in has expired; `now` is in seconds since 1970."""
        return has_passed(self.expires, now)


def has_passed(time: str | None, now: float) -> bool:
    """Whether a stored time has passed; None never passes."""
    return time is not None and parse_time(time) <= now * 1_000_000_000


def format_time(seconds: float) -> str:
    """Return a time since 1970 in ISO 8601, in UTC, to the second. The results sort by time."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
