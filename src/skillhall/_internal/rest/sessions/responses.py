"""Response models and errors of sessions, blocks, templates and snapshots."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from skillhall._internal.rest.responses import BAD_REQUEST, FindingResponse, describe_errors
from skillhall._internal.rest.sessions.requests import ZoneName


class BudgetsResponse(BaseModel):
    """Token budgets; null means no limit."""

    permanent: int | None
    stable: int | None
    working: int | None
    total: int | None


class SessionResponse(BaseModel):
    """A session. Its version is its ETag; its revision increases with every change."""

    id: str
    name: str
    budgets: BudgetsResponse
    version: int
    revision: int
    created: str
    updated: str


class ZoneResponse(BaseModel):
    """The size of a zone."""

    zone: ZoneName
    blocks: int
    tokens: int


class SessionOverviewResponse(SessionResponse):
    """A session with the sizes of its zones."""

    zones: list[ZoneResponse]


class SessionListResponse(BaseModel):
    """A page of sessions."""

    sessions: list[SessionResponse]
    nextCursor: str | None = None  # noqa: N815 - JSON key


class BlockSkillResponse(BaseModel):
    """The skill that a block was imported from."""

    skillName: str  # noqa: N815 - JSON key
    skillDescription: str  # noqa: N815 - JSON key
    sourceType: str  # noqa: N815 - JSON key
    sourceRef: str  # noqa: N815 - JSON key


class BlockContentResponse(BaseModel):
    """The content of a block."""

    type: str
    zone: ZoneName
    content: str
    tokens: int = Field(description="Estimated number of tokens.")
    metadata: BlockSkillResponse | None = None


class BlockResponse(BlockContentResponse):
    """A block. Its version is its ETag."""

    id: str
    position: str
    version: int
    created: str
    updated: str


class BlockListResponse(BaseModel):
    """Blocks in the order of the compiled context."""

    blocks: list[BlockResponse]
    revision: int


class DeletedResponse(BaseModel):
    """Id of the deleted record."""

    deleted: str


class BlockTypeResponse(BaseModel):
    """A block type."""

    id: str
    label: str
    zone: ZoneName
    icon: str
    colour: str


class BlockTypeListResponse(BaseModel):
    """The block types."""

    types: list[BlockTypeResponse]


class CandidateResponse(BaseModel):
    """A skill, and the reasons if it cannot be imported."""

    id: str
    name: str
    description: str
    tokens: int
    accepted: bool
    reasons: list[str]
    findings: list[FindingResponse]


class CandidateListResponse(BaseModel):
    """The skills of an upload, a source or a folder."""

    skills: list[CandidateResponse]


class FolderScanResponse(CandidateListResponse):
    """The skills of a folder on the server."""

    folder: str
    findings: list[FindingResponse]


class SessionImportResponse(BaseModel):
    """Result of an import."""

    blocks: list[BlockResponse]
    replaced: list[str]
    skipped: list[CandidateResponse]
    findings: list[FindingResponse]


class TemplateResponse(BaseModel):
    """A template. Its version is its ETag."""

    id: str
    name: str
    description: str
    budgets: BudgetsResponse
    version: int
    created: str
    updated: str


class TemplateListResponse(BaseModel):
    """All templates, sorted by name."""

    templates: list[TemplateResponse]


class TemplateDetailResponse(TemplateResponse):
    """A template with its blocks."""

    blocks: list[BlockContentResponse]


class SnapshotResponse(BaseModel):
    """A saved state of a session."""

    id: str
    name: str
    revision: int
    automatic: bool
    created: str


class SnapshotListResponse(BaseModel):
    """The snapshots of a session, newest first."""

    snapshots: list[SnapshotResponse]


class SnapshotDetailResponse(SnapshotResponse):
    """A snapshot with its blocks."""

    blocks: list[BlockResponse]


class SessionReplacedResponse(SessionResponse):
    """A session whose blocks were changed by a template or a snapshot."""

    before: SnapshotResponse | None = Field(None, description="Snapshot of the previous state.")


class BlockTokensResponse(BaseModel):
    """The tokens of a block."""

    id: str
    type: str
    tokens: int


class ZoneTokensResponse(BaseModel):
    """The tokens of a zone, compared with its budget."""

    zone: ZoneName
    tokens: int
    budget: int | None
    isOver: bool  # noqa: N815 - JSON key
    blocks: list[BlockTokensResponse]


class TotalTokensResponse(BaseModel):
    """The tokens of a session, compared with its budget."""

    tokens: int
    budget: int | None
    isOver: bool  # noqa: N815 - JSON key


class ContextResponse(BaseModel):
    """The compiled context."""

    session: str
    revision: int
    zones: list[ZoneTokensResponse]
    total: TotalTokensResponse
    tokensAreEstimates: Literal[True]  # noqa: N815 - JSON key
    text: str


DATABASE_ERRORS = describe_errors({503: "The server is busy, or the database is unavailable."})
NOT_FOUND = describe_errors({404: "Session, block, template or snapshot not found."})
DISK_FULL = describe_errors({507: "The disk is full."})
STORE_ERRORS = (
    BAD_REQUEST
    | DISK_FULL
    | describe_errors(
        {
            413: "A size or number exceeds its limit.",
            422: "The text contains characters that cannot be stored.",
        }
    )
)
VERSION_CONFLICT = describe_errors(
    {412: "Changed by someone else; `details` has the current version."}
)
PRECONDITION_ERRORS = VERSION_CONFLICT | describe_errors({428: "If-Match is missing."})
PLACEMENT_CONFLICT = describe_errors({409: "The block in `after` or `before` is not in the zone."})
NAME_CONFLICT = describe_errors({409: "The name is taken."})
SKILL_ERRORS = describe_errors(
    {
        409: "The session already has a skill with this name.",
        422: "The skill or the archive was rejected.",
    }
)
