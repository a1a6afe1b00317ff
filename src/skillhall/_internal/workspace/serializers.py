"""Sessions and blocks as programs read them, by REST and by the command line alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillhall._internal.workspace.model import Block, Budgets, Content, Session


def session_data(session: Session) -> dict[str, object]:
    """A session without its blocks."""
    return {
        "id": session.id,
        "name": session.name,
        "budgets": budgets_data(session.budgets),
        "version": session.version,
        "revision": session.revision,
        "created": session.created,
        "updated": session.updated,
    }


def block_data(block: Block) -> dict[str, object]:
    """One block."""
    return {
        "id": block.id,
        **content_data(block.content),
        "position": block.position,
        "version": block.version,
        "created": block.created,
        "updated": block.updated,
    }


def content_data(content: Content) -> dict[str, object]:
    """What a block says, wherever it is kept."""
    told: dict[str, object] = {
        "type": content.type,
        "zone": content.zone.value,
        "content": content.text,
        "tokens": content.tokens,
    }
    if content.skill is not None:
        told["metadata"] = {
            "skillName": content.skill.name,
            "skillDescription": content.skill.description,
            "sourceType": content.skill.source_type,
            "sourceRef": content.skill.source_ref,
        }
    return told


def budgets_data(budgets: Budgets) -> dict[str, object]:
    """How many tokens each zone, and all of them, may have."""
    return {
        "permanent": budgets.permanent,
        "stable": budgets.stable,
        "working": budgets.working,
        "total": budgets.total,
    }
