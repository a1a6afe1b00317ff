"""What the OpenAPI document says about answers on sessions."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from skillhall._internal.rest.responses import FindingData
from skillhall._internal.rest.sessions.requests import ZoneName


class BudgetsData(BaseModel):
    """How many tokens are meant to be spent."""

    permanent: int | None
    stable: int | None
    working: int | None
    total: int | None


class SessionData(BaseModel):
    """A session. Its version is its ETag; its revision counts every change in it."""

    id: str
    name: str
    budgets: BudgetsData
    version: int
    revision: int
    created: str
    updated: str


class ZoneData(BaseModel):
    """How much lies in a zone."""

    zone: ZoneName
    blocks: int
    tokens: int


class SessionOverviewData(SessionData):
    """A session and its zones."""

    zones: list[ZoneData]


class SessionsData(BaseModel):
    """A page of sessions."""

    sessions: list[SessionData]
    nextCursor: str | None = None  # noqa: N815 - as clients read it


class SkillMetadata(BaseModel):
    """The skill that a block was imported from."""

    skillName: str  # noqa: N815 - as clients read it
    skillDescription: str  # noqa: N815 - the same
    sourceType: str  # noqa: N815 - the same
    sourceRef: str  # noqa: N815 - the same


class ContentData(BaseModel):
    """What a block says."""

    type: str
    zone: ZoneName
    content: str
    tokens: int = Field(description="An estimate.")
    metadata: SkillMetadata | None = None


class BlockData(ContentData):
    """A block. Its version is its ETag."""

    id: str
    position: str
    version: int
    created: str
    updated: str


class BlocksData(BaseModel):
    """Blocks in the order in which a model reads them."""

    blocks: list[BlockData]
    revision: int


class DeletedData(BaseModel):
    """What was removed."""

    deleted: str


class TypeData(BaseModel):
    """A type of blocks."""

    id: str
    label: str
    zone: ZoneName
    icon: str
    colour: str


class TypesData(BaseModel):
    """The types of blocks."""

    types: list[TypeData]


class CandidateData(BaseModel):
    """A skill that can be imported, or why it cannot."""

    id: str
    name: str
    description: str
    tokens: int
    accepted: bool
    reasons: list[str]
    findings: list[FindingData]


class CandidatesData(BaseModel):
    """A checklist."""

    skills: list[CandidateData]


class FolderData(CandidatesData):
    """A checklist of a folder."""

    folder: str
    findings: list[FindingData]


class SkillImportData(BaseModel):
    """What an import did."""

    blocks: list[BlockData]
    replaced: list[str]
    skipped: list[CandidateData]
    findings: list[FindingData]


class TemplateData(BaseModel):
    """A template. Its version is its ETag."""

    id: str
    name: str
    description: str
    budgets: BudgetsData
    version: int
    created: str
    updated: str


class TemplatesData(BaseModel):
    """All templates, by name."""

    templates: list[TemplateData]


class ArrangementData(TemplateData):
    """A template and its blocks."""

    blocks: list[ContentData]


class SnapshotData(BaseModel):
    """A session as it was."""

    id: str
    name: str
    revision: int
    automatic: bool
    created: str


class SnapshotsData(BaseModel):
    """The snapshots of a session, the newest first."""

    snapshots: list[SnapshotData]


class SavedSessionData(SnapshotData):
    """A snapshot and its blocks."""

    blocks: list[BlockData]


class ReplacedData(SessionData):
    """A session whose blocks were replaced or joined by others."""

    before: SnapshotData | None = Field(None, description="As it was before.")


class BlockCost(BaseModel):
    """What one block costs."""

    id: str
    type: str
    tokens: int


class ZoneCost(BaseModel):
    """What a zone costs, against its budget."""

    zone: ZoneName
    tokens: int
    budget: int | None
    isOver: bool  # noqa: N815 - as clients read it
    blocks: list[BlockCost]


class TotalCost(BaseModel):
    """What a session costs, against its budget."""

    tokens: int
    budget: int | None
    isOver: bool  # noqa: N815 - as clients read it


class ContextData(BaseModel):
    """The compiled context."""

    session: str
    revision: int
    zones: list[ZoneCost]
    total: TotalCost
    tokensAreEstimates: Literal[True]  # noqa: N815 - as clients read it
    text: str


class EventData(BaseModel):
    """The data of one event in the stream."""

    kind: str
    subject: str
    session: str
    revision: int
    data: dict[str, Any]
    at: str
