"""What clients send about sessions, blocks, templates and snapshots."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from skillhall._internal.workspace import SessionBudgets, Zone
from skillhall._internal.workspace.ordering import BlockPlacement
from skillhall._internal.workspace.validation import (
    MAX_BUDGET,
    MAX_CONTENT,
    MAX_DESCRIPTION,
    MAX_NAME,
)

ID_PATTERN = r"^[0-9a-z]{1,64}$"
# Checked where blocks are changed, in bytes: what is too large is a 413, not a wrong form.
_CONTENT_LIMIT_SCHEMA: dict[str, JsonValue] = {"maxLength": MAX_CONTENT}
ZoneName = Literal["PERMANENT", "STABLE", "WORKING"]


class _StrictRequest(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class BudgetsRequest(_StrictRequest):
    """How many tokens are meant to be spent; null is no limit."""

    permanent: int | None = Field(None, ge=0, le=MAX_BUDGET)
    stable: int | None = Field(None, ge=0, le=MAX_BUDGET)
    working: int | None = Field(None, ge=0, le=MAX_BUDGET)
    total: int | None = Field(None, ge=0, le=MAX_BUDGET)

    def to_budgets(self) -> SessionBudgets:
        """The budgets."""
        return SessionBudgets(self.permanent, self.stable, self.working, self.total)


class CreateSessionRequest(_StrictRequest):
    """A new session, empty or out of a template."""

    name: str = Field(min_length=1, max_length=MAX_NAME, examples=["Research"])
    budgets: BudgetsRequest | None = None
    template: str | None = Field(None, pattern=ID_PATTERN, description="The id of a template.")


class EditSessionRequest(_StrictRequest):
    """What changes about a session."""

    name: str | None = Field(None, min_length=1, max_length=MAX_NAME)
    budgets: BudgetsRequest | None = None


class DuplicateSessionRequest(_StrictRequest):
    """What a copy is called."""

    name: str | None = Field(None, min_length=1, max_length=MAX_NAME)


class _PlacedRequest(_StrictRequest):
    zone: ZoneName | None = None
    after: str | None = Field(
        None, pattern=ID_PATTERN, description="The block that it stands after."
    )
    before: str | None = Field(
        None, pattern=ID_PATTERN, description="The block that it stands before."
    )
    first: bool = Field(default=False, description="Whether it stands first in its zone.")

    def to_placement(self) -> BlockPlacement:
        """Where it should stand."""
        return BlockPlacement(self.after or "", self.before or "", self.first)

    def target_zone(self) -> Zone | None:
        """The zone, if one is named."""
        return None if self.zone is None else Zone(self.zone)


class AddBlockRequest(_PlacedRequest):
    """A new block; without a place, it goes to the end of its zone."""

    type: str = Field(max_length=MAX_NAME, examples=["note"])
    content: str = Field("", json_schema_extra=_CONTENT_LIMIT_SCHEMA)


class EditBlockRequest(_StrictRequest):
    """What changes about a block."""

    content: str | None = Field(None, json_schema_extra=_CONTENT_LIMIT_SCHEMA)
    type: str | None = Field(None, max_length=MAX_NAME)


class MoveBlockRequest(_PlacedRequest):
    """Where a block goes; without a place, to the end of the zone."""


class SessionImportRequest(_StrictRequest):
    """Skills of a source, or of a folder of the server's machine, if that is allowed."""

    source: str | None = Field(None, min_length=1, examples=["acme/skills/pdf@v2"])
    folder: str | None = Field(None, description="Instead of a source; empty is ~/.claude/skills.")
    skills: list[str] = Field(default_factory=list, description="Only these, by name or folder.")
    zone: ZoneName | None = None
    same: Literal["refuse", "replace", "keep"] = Field(
        "refuse", description="What becomes of skills whose name is there already."
    )


class SaveTemplateRequest(_StrictRequest):
    """A template out of a session's blocks."""

    session: str = Field(pattern=ID_PATTERN)
    name: str = Field(min_length=1, max_length=MAX_NAME)
    description: str = Field("", max_length=MAX_DESCRIPTION)


class EditTemplateRequest(_StrictRequest):
    """What changes about a template; with a session, its blocks replace the template's."""

    name: str | None = Field(None, min_length=1, max_length=MAX_NAME)
    description: str | None = Field(None, max_length=MAX_DESCRIPTION)
    session: str | None = Field(None, pattern=ID_PATTERN)


class ApplyTemplateRequest(_StrictRequest):
    """Which template, and what becomes of the blocks that are there."""

    template: str = Field(pattern=ID_PATTERN)
    how: Literal["replace", "append"] = "append"


class SaveSnapshotRequest(_StrictRequest):
    """What a snapshot is called."""

    name: str = Field(min_length=1, max_length=MAX_NAME)
