"""What clients send about sessions, blocks, templates and snapshots."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from skillhall._internal.workspace import Budgets, Zone
from skillhall._internal.workspace.ordering import Place
from skillhall._internal.workspace.validation import (
    MAX_BUDGET,
    MAX_CONTENT,
    MAX_DESCRIPTION,
    MAX_NAME,
)

ID = r"^[0-9a-z]{1,64}$"
# Checked where blocks are changed, in bytes: what is too large is a 413, not a wrong form.
_LIMIT: dict[str, JsonValue] = {"maxLength": MAX_CONTENT}
ZoneName = Literal["PERMANENT", "STABLE", "WORKING"]


class _Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class BudgetsBody(_Body):
    """How many tokens are meant to be spent; null is no limit."""

    permanent: int | None = Field(None, ge=0, le=MAX_BUDGET)
    stable: int | None = Field(None, ge=0, le=MAX_BUDGET)
    working: int | None = Field(None, ge=0, le=MAX_BUDGET)
    total: int | None = Field(None, ge=0, le=MAX_BUDGET)

    def value(self) -> Budgets:
        """The budgets."""
        return Budgets(self.permanent, self.stable, self.working, self.total)


class SessionBody(_Body):
    """A new session, empty or out of a template."""

    name: str = Field(min_length=1, max_length=MAX_NAME, examples=["Research"])
    budgets: BudgetsBody | None = None
    template: str | None = Field(None, pattern=ID, description="The id of a template.")


class SessionPatch(_Body):
    """What changes about a session."""

    name: str | None = Field(None, min_length=1, max_length=MAX_NAME)
    budgets: BudgetsBody | None = None


class CopyBody(_Body):
    """What a copy is called."""

    name: str | None = Field(None, min_length=1, max_length=MAX_NAME)


class _Placed(_Body):
    zone: ZoneName | None = None
    after: str | None = Field(None, pattern=ID, description="The block that it stands after.")
    before: str | None = Field(None, pattern=ID, description="The block that it stands before.")
    first: bool = Field(default=False, description="Whether it stands first in its zone.")

    def place(self) -> Place:
        """Where it should stand."""
        return Place(self.after or "", self.before or "", self.first)

    def goal(self) -> Zone | None:
        """The zone, if one is named."""
        return None if self.zone is None else Zone(self.zone)


class BlockBody(_Placed):
    """A new block; without a place, it goes to the end of its zone."""

    type: str = Field(max_length=MAX_NAME, examples=["note"])
    content: str = Field("", json_schema_extra=_LIMIT)


class BlockPatch(_Body):
    """What changes about a block."""

    content: str | None = Field(None, json_schema_extra=_LIMIT)
    type: str | None = Field(None, max_length=MAX_NAME)


class MoveBody(_Placed):
    """Where a block goes; without a place, to the end of the zone."""


class SkillImportBody(_Body):
    """Skills of a source, or of a folder of the server's machine, if that is allowed."""

    source: str | None = Field(None, min_length=1, examples=["acme/skills/pdf@v2"])
    folder: str | None = Field(None, description="Instead of a source; empty is ~/.claude/skills.")
    skills: list[str] = Field(default_factory=list, description="Only these, by name or folder.")
    zone: ZoneName | None = None
    same: Literal["refuse", "replace", "keep"] = Field(
        "refuse", description="What becomes of skills whose name is there already."
    )


class TemplateBody(_Body):
    """A template out of a session's blocks."""

    session: str = Field(pattern=ID)
    name: str = Field(min_length=1, max_length=MAX_NAME)
    description: str = Field("", max_length=MAX_DESCRIPTION)


class TemplatePatch(_Body):
    """What changes about a template; with a session, its blocks replace the template's."""

    name: str | None = Field(None, min_length=1, max_length=MAX_NAME)
    description: str | None = Field(None, max_length=MAX_DESCRIPTION)
    session: str | None = Field(None, pattern=ID)


class ApplyBody(_Body):
    """Which template, and what becomes of the blocks that are there."""

    template: str = Field(pattern=ID)
    how: Literal["replace", "append"] = "append"


class SnapshotBody(_Body):
    """What a snapshot is called."""

    name: str = Field(min_length=1, max_length=MAX_NAME)
