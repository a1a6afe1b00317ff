"""Paths and request models of sessions, blocks, templates and snapshots."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from skillhall._internal.rest.route_parameters import path_text
from skillhall._internal.workspace import MAX_BUDGET, SessionBudgets, Zone
from skillhall._internal.workspace.ordering import BlockPlacement
from skillhall._internal.workspace.validation import (
    MAX_CONTENT,
    MAX_DESCRIPTION,
    MAX_NAME,
)

ID_PATTERN = r"^[0-9a-z]{1,64}$"
# Only documentation: the workspace checks the limit in bytes, so that the error is a 413.
_CONTENT_LIMIT_SCHEMA: dict[str, JsonValue] = {"maxLength": MAX_CONTENT}
ZoneName = Literal["PERMANENT", "STABLE", "WORKING"]
ZONE_NAMES = [*get_args(ZoneName)]

API_PREFIX = "/api/v1"
SESSIONS_PATH = f"{API_PREFIX}/sessions"
SESSION_PATH = SESSIONS_PATH + "/{session}"
SessionId = Annotated[str, path_text("Id of the session.")]
BlockId = Annotated[str, path_text("Id of the block.")]
TemplateId = Annotated[str, path_text("Id of the template.")]
SnapshotId = Annotated[str, path_text("Id of the snapshot.")]


class _StrictRequest(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class BudgetsRequest(_StrictRequest):
    """Token budgets; null means no limit."""

    permanent: int | None = Field(None, ge=0, le=MAX_BUDGET)
    stable: int | None = Field(None, ge=0, le=MAX_BUDGET)
    working: int | None = Field(None, ge=0, le=MAX_BUDGET)
    total: int | None = Field(None, ge=0, le=MAX_BUDGET)

    def to_budgets(self) -> SessionBudgets:
        """Convert to budgets."""
        return SessionBudgets(self.permanent, self.stable, self.working, self.total)


class CreateSessionRequest(_StrictRequest):
    """A new session, empty or from a template."""

    name: str = Field(min_length=1, max_length=MAX_NAME, examples=["Research"])
    budgets: BudgetsRequest | None = None
    template: str | None = Field(None, pattern=ID_PATTERN, description="Id of a template.")


class EditSessionRequest(_StrictRequest):
    """Changes to a session."""

    name: str | None = Field(None, min_length=1, max_length=MAX_NAME)
    budgets: BudgetsRequest | None = None


class DuplicateSessionRequest(_StrictRequest):
    """Name of the copy."""

    name: str | None = Field(None, min_length=1, max_length=MAX_NAME)


class _PlacedRequest(_StrictRequest):
    zone: ZoneName | None = None
    after: str | None = Field(None, pattern=ID_PATTERN, description="Place after this block.")
    before: str | None = Field(None, pattern=ID_PATTERN, description="Place before this block.")
    first: bool = Field(default=False, description="Place first in the zone.")

    def to_placement(self) -> BlockPlacement:
        """Convert to a placement."""
        return BlockPlacement(self.after or "", self.before or "", self.first)

    def target_zone(self) -> Zone | None:
        """Return the zone, or None if none is set."""
        return None if self.zone is None else Zone(self.zone)


class AddBlockRequest(_PlacedRequest):
    """A new block. By default it goes to the end of its zone."""

    type: str = Field(max_length=MAX_NAME, examples=["note"])
    content: str = Field("", json_schema_extra=_CONTENT_LIMIT_SCHEMA)


class EditBlockRequest(_StrictRequest):
    """Changes to a block."""

    content: str | None = Field(None, json_schema_extra=_CONTENT_LIMIT_SCHEMA)
    type: str | None = Field(None, max_length=MAX_NAME)


class MoveBlockRequest(_PlacedRequest):
    """New position of a block. By default it goes to the end of the zone."""


class SessionImportRequest(_StrictRequest):
    """Skills of a source, or of a folder on the server if folder scans are enabled."""

    source: str | None = Field(None, min_length=1, examples=["acme/skills/pdf@v2"])
    folder: str | None = Field(
        None, description="Folder instead of a source; empty means ~/.claude/skills."
    )
    skills: list[str] = Field(
        default_factory=list, description="Names or folders of the skills to import; default all."
    )
    zone: ZoneName | None = None
    same: Literal["refuse", "replace", "keep"] = Field(
        "refuse", description="What to do with skills that the session already has."
    )


class SaveTemplateRequest(_StrictRequest):
    """A template from the blocks of a session."""

    session: str = Field(pattern=ID_PATTERN)
    name: str = Field(min_length=1, max_length=MAX_NAME)
    description: str = Field("", max_length=MAX_DESCRIPTION)


class EditTemplateRequest(_StrictRequest):
    """Changes to a template. If `session` is set, its blocks replace the template's."""

    name: str | None = Field(None, min_length=1, max_length=MAX_NAME)
    description: str | None = Field(None, max_length=MAX_DESCRIPTION)
    session: str | None = Field(None, pattern=ID_PATTERN)


class ApplyTemplateRequest(_StrictRequest):
    """The template to apply, and whether it replaces the existing blocks."""

    template: str = Field(pattern=ID_PATTERN)
    how: Literal["replace", "append"] = "append"


class SaveSnapshotRequest(_StrictRequest):
    """Name of a snapshot."""

    name: str = Field(min_length=1, max_length=MAX_NAME)
