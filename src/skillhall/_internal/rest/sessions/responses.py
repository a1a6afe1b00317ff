"""What the OpenAPI document says about answers on sessions."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from skillhall._internal.rest.responses import FindingResponse
from skillhall._internal.rest.sessions.requests import ZoneName


class BudgetsResponse(BaseModel):
    """How many tokens are meant to be spent."""

    permanent: int | None
    stable: int | None
    working: int | None
    total: int | None


class SessionResponse(BaseModel):
    """A session. Its version is its ETag; its revision counts every change in it."""

    id: str
    name: str
    budgets: BudgetsResponse
    version: int
    revision: int
    created: str
    updated: str


class ZoneResponse(BaseModel):
    """How much lies in a zone."""

    zone: ZoneName
    blocks: int
    tokens: int


class SessionOverviewResponse(SessionResponse):
    """A session and its zones."""

    zones: list[ZoneResponse]


class SessionListResponse(BaseModel):
    """A page of sessions."""

    sessions: list[SessionResponse]
    nextCursor: str | None = None  # noqa: N815 - as clients read it


class BlockSkillResponse(BaseModel):
    """The skill that a block was imported from."""

    skillName: str  # noqa: N815 - as clients read it
    skillDescription: str  # noqa: N815 - the same
    sourceType: str  # noqa: N815 - the same
    sourceRef: str  # noqa: N815 - the same


class BlockContentResponse(BaseModel):
    """What a block says."""

    type: str
    zone: ZoneName
    content: str
    tokens: int = Field(description="An estimate.")
    metadata: BlockSkillResponse | None = None


class BlockResponse(BlockContentResponse):
    """A block. Its version is its ETag."""

    id: str
    position: str
    version: int
    created: str
    updated: str


class BlockListResponse(BaseModel):
    """Blocks in the order in which a model reads them."""

    blocks: list[BlockResponse]
    revision: int


class DeletedResponse(BaseModel):
    """What was removed."""

    deleted: str


class BlockTypeResponse(BaseModel):
    """A type of blocks."""

    id: str
    label: str
    zone: ZoneName
    icon: str
    colour: str


class BlockTypeListResponse(BaseModel):
    """The types of blocks."""

    types: list[BlockTypeResponse]


class CandidateResponse(BaseModel):
    """A skill that can be imported, or why it cannot."""

    id: str
    name: str
    description: str
    tokens: int
    accepted: bool
    reasons: list[str]
    findings: list[FindingResponse]


class CandidateListResponse(BaseModel):
    """A checklist."""

    skills: list[CandidateResponse]


class FolderScanResponse(CandidateListResponse):
    """A checklist of a folder."""

    folder: str
    findings: list[FindingResponse]


class SessionImportResponse(BaseModel):
    """What an import did."""

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
    """All templates, by name."""

    templates: list[TemplateResponse]


class TemplateDetailResponse(TemplateResponse):
    """A template and its blocks."""

    blocks: list[BlockContentResponse]


class SnapshotResponse(BaseModel):
    """A session as it was."""

    id: str
    name: str
    revision: int
    automatic: bool
    created: str


class SnapshotListResponse(BaseModel):
    """The snapshots of a session, the newest first."""

    snapshots: list[SnapshotResponse]


class SnapshotDetailResponse(SnapshotResponse):
    """A snapshot and its blocks."""

    blocks: list[BlockResponse]


class SessionReplacedResponse(SessionResponse):
    """A session whose blocks were replaced or joined by others."""

    before: SnapshotResponse | None = Field(None, description="As it was before.")


class BlockTokensResponse(BaseModel):
    """What one block costs."""

    id: str
    type: str
    tokens: int


class ZoneTokensResponse(BaseModel):
    """What a zone costs, against its budget."""

    zone: ZoneName
    tokens: int
    budget: int | None
    isOver: bool  # noqa: N815 - as clients read it
    blocks: list[BlockTokensResponse]


class TotalTokensResponse(BaseModel):
    """What a session costs, against its budget."""

    tokens: int
    budget: int | None
    isOver: bool  # noqa: N815 - as clients read it


class ContextResponse(BaseModel):
    """The compiled context."""

    session: str
    revision: int
    zones: list[ZoneTokensResponse]
    total: TotalTokensResponse
    tokensAreEstimates: Literal[True]  # noqa: N815 - as clients read it
    text: str


class EventResponse(BaseModel):
    """The data of one event in the stream."""

    kind: str
    subject: str
    session: str
    revision: int
    data: dict[str, Any]
    at: str
