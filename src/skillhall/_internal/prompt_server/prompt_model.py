"""Prompt model: prompts, sources and uploads."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.skipped_items import SkippedItem
    from skillhall._internal.settings import Secret

PromptKind: TypeAlias = Literal["built-in", "user"]
IngestStatus: TypeAlias = Literal["ingested", "unchanged"]
SourceRole: TypeAlias = Literal["configured", "followed", "override", "upload"]

BUILT_IN = "built-in"  # source name in responses when no repository is configured


class PromptArgument(NamedTuple):
    """Argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


class PromptFile(NamedTuple):
    """Supporting file with its path in the skill's folder."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prompt: a flat Markdown file, or a skill folder."""

    name: str
    description: str
    arguments: tuple[PromptArgument, ...]
    body: str
    kind: PromptKind
    has_files: bool  # True even if all of them are too large to be served
    files: tuple[PromptFile, ...] = ()
    hidden: bool = False  # hidden from models; users may still call it


def serialize_prompt(prompt: Prompt) -> dict[str, object]:
    """Serialize a prompt as a row of a list, for REST and MCP."""
    row: dict[str, object] = {"name": prompt.name, "description": prompt.description}
    if prompt.arguments:
        row["arguments"] = [argument._asdict() for argument in prompt.arguments]
    return row


class Stale(NamedTuple):
    """Reason why a snapshot is outdated, and the time of its last good refresh.

    `since` is an ISO time in UTC, or "" if the source was never read.
    """

    reason: str
    since: str


class SourceSelector(NamedTuple):
    """Source of a request: an override, an upload, or the configured source."""

    repo: str = ""
    path: str = ""
    branch: str = ""
    source: str = ""  # name of an upload
    token: Secret | None = None  # used for this request only
    allow_tokens: bool = True  # whether the client may use the server's git tokens

    @property
    def names_repository(self) -> bool:
        """Whether a repository may have to be fetched for this request."""
        return bool(self.repo or self.path or self.branch or self.token)


class FollowedRepository(NamedTuple):
    """Repository that users follow: URL, folder and branch."""

    repo: str
    path: str = ""
    branch: str = ""  # "" means the default branch

    @property
    def key(self) -> str:
        """Identifier in URLs and forms."""
        data = "\n".join(self).encode("utf-8", "surrogatepass")
        return hashlib.sha256(data).hexdigest()[:16]


class UploadedFile(NamedTuple):
    """File of an upload as it was sent: base64, with an optional mode."""

    path: str
    content: str
    mode: int | None = None


class Upload(NamedTuple):
    """Source that a client uploads."""

    source: str
    files: Sequence[UploadedFile]
    content_hash: str = ""


class IngestResult(NamedTuple):
    """Result of an upload."""

    source: str
    content_hash: str
    file_count: int
    status: IngestStatus


class SourceStatus(NamedTuple):
    """Status of one source, for health checks and pages."""

    source: str
    commit: str
    prompts: int
    stale: Stale | None
    checked: str  # ISO time of the last refresh, or ""
    followed: FollowedRepository | None = None  # set if users can unfollow it
    role: SourceRole = "configured"
    skipped: tuple[SkippedItem, ...] = ()  # items of the source that are not served
