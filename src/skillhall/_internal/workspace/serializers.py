"""Sessions and blocks as programs read them, by REST and by the command line alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.policy.effects import findings_data
from skillhall._internal.workspace import (
    Block,
    Session,
    Template,
    Zone,
)
from skillhall._internal.workspace.block_types import BLOCK_TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.workspace import (
        Budgets,
        Content,
        Event,
        Snapshot,
    )
    from skillhall._internal.workspace.context import Context, Spending, ZoneContext
    from skillhall._internal.workspace.importer import FolderScan, Imported
    from skillhall._internal.workspace.sessions import Overview
    from skillhall._internal.workspace.skill_blocks import Candidate
    from skillhall._internal.workspace.snapshots import SavedSession
    from skillhall._internal.workspace.templates import Arrangement


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


def current_data(current: object) -> dict[str, object]:
    """What is there, for somebody who knew an older version of it."""
    if isinstance(current, Block):
        return {"current": block_data(current)}
    if isinstance(current, Session):
        return {"current": session_data(current)}
    if isinstance(current, Template):
        return {"current": template_data(current)}
    return {}


def overview_data(overview: Overview) -> dict[str, object]:
    """A session and how much lies in its zones."""
    zones = []
    for zone in Zone:
        size = overview.sizes.get(zone)
        blocks, tokens = (size.blocks, size.tokens) if size else (0, 0)
        zones.append({"zone": zone.value, "blocks": blocks, "tokens": tokens})
    return {**session_data(overview.session), "zones": zones}


def template_data(template: Template) -> dict[str, object]:
    """A template without its blocks."""
    return {
        "id": template.id,
        "name": template.name,
        "description": template.description,
        "budgets": budgets_data(template.budgets),
        "version": template.version,
        "created": template.created,
        "updated": template.updated,
    }


def arrangement_data(found: Arrangement) -> dict[str, object]:
    """A template with its blocks."""
    return {**template_data(found.template), "blocks": [*map(content_data, found.contents)]}


def snapshot_data(snapshot: Snapshot) -> dict[str, object]:
    """A snapshot without its blocks."""
    return {
        "id": snapshot.id,
        "name": snapshot.name,
        "revision": snapshot.revision,
        "automatic": snapshot.automatic,
        "created": snapshot.created,
    }


def saved_session_data(saved: SavedSession) -> dict[str, object]:
    """A snapshot with its blocks."""
    return {**snapshot_data(saved.snapshot), "blocks": [*map(block_data, saved.blocks)]}


def context_data(context: Context) -> dict[str, object]:
    """The compiled context, and what each part of it costs."""
    return {
        "session": context.session.id,
        "revision": context.session.revision,
        "zones": [_zone(zone) for zone in context.zones],
        "total": _spending(context.total),
        "tokensAreEstimates": True,
        "text": context.text,
    }


def candidate_data(candidate: Candidate) -> dict[str, object]:
    """A row of a checklist."""
    return {
        "id": candidate.id,
        "name": candidate.name,
        "description": candidate.description,
        "tokens": candidate.tokens,
        "accepted": not candidate.reasons,
        "reasons": candidate.reasons,
        "findings": findings_data(candidate.findings),
    }


def candidates_data(candidates: Sequence[Candidate]) -> dict[str, object]:
    """A checklist."""
    return {"skills": [*map(candidate_data, candidates)]}


def scan_data(scan: FolderScan) -> dict[str, object]:
    """A checklist of a folder."""
    told = {"folder": scan.folder, "findings": findings_data(scan.findings)}
    return {**candidates_data(scan.candidates), **told}


def imported_data(done: Imported) -> dict[str, object]:
    """What an import did."""
    return {
        "blocks": [*map(block_data, done.blocks)],
        "replaced": [*done.replaced],
        "skipped": [*map(candidate_data, done.skipped)],
        "findings": findings_data(done.findings),
    }


def event_data(event: Event) -> dict[str, object]:
    """One event."""
    return {
        "kind": event.kind,
        "subject": event.subject,
        "session": event.session,
        "revision": event.revision,
        "data": dict(event.data),
        "at": event.at,
    }


def types_data() -> dict[str, object]:
    """The types of blocks."""
    rows = [
        {
            "id": one.id,
            "label": one.label,
            "zone": one.zone.value,
            "icon": one.icon,
            "colour": one.colour,
        }
        for one in BLOCK_TYPES.values()
    ]
    return {"types": rows}


def _zone(zone: ZoneContext) -> dict[str, object]:
    blocks = [
        {"id": block.id, "type": block.content.type, "tokens": block.content.tokens}
        for block in zone.blocks
    ]
    return {"zone": zone.zone.value, **_spending(zone.spending), "blocks": blocks}


def _spending(spending: Spending) -> dict[str, object]:
    return {"tokens": spending.tokens, "budget": spending.budget, "isOver": spending.is_over}
