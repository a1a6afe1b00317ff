"""What the counter hands out: prompts, and a snapshot of all of one source at one commit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.policy.skipped_items import SkippedItem
    from skillhall._internal.settings import Secret
    from skillhall.errors import SkillhallError

PromptKind: TypeAlias = Literal["built-in", "user"]
IngestStatus: TypeAlias = Literal["ingested", "unchanged"]
SourceRole: TypeAlias = Literal["configured", "followed", "override", "upload"]

BUILT_IN = "built-in"  # what answers name as their source when no repository is configured


class PromptArgument(NamedTuple):
    """One argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


class PromptFile(NamedTuple):
    """A supporting file: its path in the skill's folder, and its bytes."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: a flat Markdown file, or a skill's folder."""

    name: str
    description: str
    arguments: tuple[PromptArgument, ...]
    body: str
    kind: PromptKind
    has_files: bool  # also if its only file is too large to be handed out
    files: tuple[PromptFile, ...] = ()
    hidden: bool = False  # whether it asks not to be shown to models; people may still call it

    def with_files(self, files: tuple[PromptFile, ...]) -> Prompt:
        """The same prompt, with the bytes of its files."""
        return replace(self, files=files)


class Stale(NamedTuple):
    """Why a snapshot is not the newest, and since when, as an ISO time in UTC.

    The built-in prompts alone are stale since "": the configured source was never read.
    """

    reason: str
    since: str


class PromptSnapshot(Protocol):
    """All prompts of one source, at one commit; it never changes.

    `list_data` and `get_data` are JSON, ready to be put behind `"data":` of an answer to
    `GET /api/v1/prompts` and to `POST /api/v1/prompts/{name}`; without arguments it is made once.
    """

    @property
    def source(self) -> str:
        """What answers call it, without credentials."""

    @property
    def commit(self) -> str:
        """The commit it was read at; "" for folders and uploads."""

    @property
    def stale(self) -> Stale | None:
        """Why it is an older copy, if it is one."""

    @property
    def digest(self) -> str:
        """Changes with whatever a list or an answer could say; the heart of an ETag."""

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """What was left out, and what else was noticed."""

    @property
    def skipped(self) -> tuple[SkippedItem, ...]:
        """What the source holds but does not serve."""

    @property
    def names(self) -> Sequence[str]:
        """The names of all prompts, in order."""

    def prompt(self, name: str) -> Prompt:
        """The prompt of that name, with its files. Raises: PromptNotFound."""

    def summary(self, name: str) -> Prompt:
        """The same without the files' bytes. Raises: PromptNotFound."""

    def list_json(self) -> bytes:
        """Every prompt's name, description and arguments, and the source."""

    def prompt_json(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        """One prompt's description, messages, files and source, with its arguments filled in.

        Raises: PromptNotFound, MissingArguments, InvalidArguments, PromptsSourceError.
        """


class SourceSelector(NamedTuple):
    """Which source a call is about: an override, an upload, or what is configured."""

    repo: str = ""
    path: str = ""
    branch: str = ""
    source: str = ""  # the name of an upload
    token: Secret | None = None  # for this call alone


class FollowedRepository(NamedTuple):
    """A repository that people follow: its address, the folder in it, and the branch."""

    repo: str
    path: str = ""
    branch: str = ""  # "" is the default one

    @property
    def key(self) -> str:
        """What pages and forms call it."""
        whole = "\n".join(self).encode("utf-8", "surrogatepass")
        return hashlib.sha256(whole).hexdigest()[:16]


class UploadedFile(NamedTuple):
    """One file of an upload, as it was sent: base64, and perhaps a mode."""

    path: str
    content: str
    mode: int | None = None


class Upload(NamedTuple):
    """A source that a client sends."""

    source: str
    files: Sequence[UploadedFile]
    content_hash: str = ""


class IngestResult(NamedTuple):
    """What became of an upload."""

    source: str
    content_hash: str
    file_count: int
    status: IngestStatus


class SourceStatus(NamedTuple):
    """How one source stands, for health checks."""

    source: str
    commit: str
    prompts: int
    stale: Stale | None
    checked: str  # ISO time of the last look at the remote; "" if there was none
    followed: FollowedRepository | None = None  # what people follow there, and may stop to follow
    role: SourceRole = "configured"  # overrides and uploads are named by clients
    skipped: tuple[SkippedItem, ...] = ()  # what it holds but does not serve


class PromptServiceProtocol(Protocol):
    """The verbs of a prompt server; thread-safe."""

    def snapshot(self, selector: SourceSelector = ...) -> PromptSnapshot:
        """What is handed out now; read at the first call, and again when its time is over.

        Raises: PromptsSourceError, SourceUnknown, SourceRejected.
        """

    def cached_snapshot(self, selector: SourceSelector = ...) -> PromptSnapshot | None:
        """The same if it is at hand and no look at the remote is due, else None; never waits."""

    def refresh(self, selector: SourceSelector = ...) -> PromptSnapshot:
        """The newest, now; it is stale if the source cannot be reached. Raises: as `snapshot`."""

    def ingest(self, upload: Upload) -> IngestResult:
        """Keep an upload under its name. Raises: UploadRejected, TooLarge."""

    def handle_push(self, urls: Sequence[str], branch: str) -> bool:
        """Note that a repository has news; whether it is one of ours. It is refreshed soon."""

    def status(self) -> Sequence[SourceStatus]:
        """Every source that is in use, the configured one first, then those that are followed."""

    def follow(self, selector: SourceSelector) -> SourceStatus:
        """Read a repository, and give its skills from now on.

        Raises: FollowingOff, SourceRejected, PromptsSourceError, NoSkillThere, Conflict,
        FieldRefused, ConfigInvalid, OSError.
        """

    def unfollow(self, key: str) -> FollowedRepository:
        """Give the skills of a repository no longer.

        Raises: FollowingOff, RecordNotFound, ConfigInvalid, OSError.
        """

    def refresh_followed(self) -> None:
        """Look at all that are followed, now; how it went, `status` says."""

    @property
    def follow_error(self) -> SkillhallError | None:
        """Why no repository can be followed; None if they can."""

    def close(self) -> None:
        """Stop looking for news, and remove what was only kept for this process."""
