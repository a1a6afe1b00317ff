"""Prompt model: prompts, sources, uploads, and the protocols of snapshot and service."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.policy.skipped_items import SkippedItem
    from skillhall._internal.settings import Secret
    from skillhall.errors import SkillhallError

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
    has_files: bool  # also if its only file is too large to be served
    files: tuple[PromptFile, ...] = ()
    hidden: bool = False  # hidden from models; users may still call it


def serialize_prompt(prompt: Prompt) -> dict[str, object]:
    """Serialize a prompt as a row of a list, for REST and MCP."""
    row: dict[str, object] = {"name": prompt.name, "description": prompt.description}
    if prompt.arguments:
        row["arguments"] = [argument._asdict() for argument in prompt.arguments]
    return row


class Stale(NamedTuple):
    """Reason why a snapshot is outdated, and an ISO time in UTC.

    `since` is "" for the built-in prompts alone: the configured source was never read.
    """

    reason: str
    since: str


class PromptSnapshot(Protocol):
    """Immutable set of all prompts of one source at one commit.

    `list_json` and `prompt_json` are the `data` of the responses to `GET /api/v1/prompts` and
    `POST /api/v1/prompts/{name}`. Without arguments, the JSON is cached.
    """

    @property
    def source(self) -> str:
        """Name of the source in responses, without credentials."""

    @property
    def commit(self) -> str:
        """Commit of the snapshot; "" for folders and uploads."""

    @property
    def stale(self) -> Stale | None:
        """Why the snapshot is outdated, or None."""

    @property
    def digest(self) -> str:
        """Digest that changes with any response; used in ETags."""

    @property
    def skipped(self) -> tuple[SkippedItem, ...]:
        """Items of the source that are not served."""

    @property
    def names(self) -> Sequence[str]:
        """Names of all prompts, in order."""

    def summary(self, name: str) -> Prompt:
        """Return a prompt without the contents of its files. Raises: PromptNotFound."""

    @property
    def list_json(self) -> bytes:
        """Name, description and arguments of every prompt, and the source."""

    def prompt_json(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        """Return a rendered prompt: description, messages, files and source.

        Raises: PromptNotFound, MissingArguments, InvalidArguments, PromptsSourceError.
        """


class SourceSelector(NamedTuple):
    """Source of a request: an override, an upload, or the configured source."""

    repo: str = ""
    path: str = ""
    branch: str = ""
    source: str = ""  # name of an upload
    token: Secret | None = None  # used for this request only


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


class PromptServiceProtocol(Protocol):
    """Operations of a prompt server. Thread-safe."""

    def snapshot(self, selector: SourceSelector = ...) -> PromptSnapshot:
        """Return the current snapshot. It is read on first use and refreshed when due.

        Raises: PromptsSourceError, SourceUnknown, SourceRejected.
        """

    def cached_snapshot(self, selector: SourceSelector = ...) -> PromptSnapshot | None:
        """Return the snapshot if no refresh is due, else None. Never blocks."""

    def refresh(self, selector: SourceSelector = ...) -> PromptSnapshot:
        """Refresh a source; the result is stale if that fails. Raises: as `snapshot`."""

    def ingest(self, upload: Upload) -> IngestResult:
        """Store an upload under its name. Raises: UploadRejected, TooLarge."""

    def handle_push(self, urls: Sequence[str], branch: str) -> bool:
        """Mark a pushed repository as due; return whether it is in use."""

    def status(self) -> Sequence[SourceStatus]:
        """Return the status of all sources: configured, followed, then the others."""

    def follow(self, selector: SourceSelector) -> SourceStatus:
        """Read a repository and serve its skills from now on.

        Raises: FollowingOff, SourceRejected, PromptsSourceError, NoSkillThere, Conflict,
        FieldRefused, ConfigInvalid, OSError.
        """

    def unfollow(self, key: str) -> FollowedRepository:
        """Stop serving the skills of a repository.

        Raises: FollowingOff, RecordNotFound, ConfigInvalid, OSError.
        """

    def refresh_followed(self) -> None:
        """Refresh all followed repositories; `status` has the results."""

    @property
    def follow_error(self) -> SkillhallError | None:
        """Reason why no repository can be followed, or None."""

    def close(self) -> None:
        """Stop polling and delete the files of this process."""
