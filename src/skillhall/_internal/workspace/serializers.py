"""JSON of sessions, blocks, templates and snapshots, for REST and the CLI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.policy.effects import serialize_findings
from skillhall._internal.workspace import Block, Session, Template, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.workspace import BlockContent, Event, SessionBudgets, SessionSnapshot
    from skillhall._internal.workspace.context import Context, Spending, ZoneContext
    from skillhall._internal.workspace.importer import FolderScan, ImportResult
    from skillhall._internal.workspace.sessions import SessionOverview
    from skillhall._internal.workspace.skill_blocks import BlockCandidate
    from skillhall._internal.workspace.snapshots import SnapshotDetail
    from skillhall._internal.workspace.templates import TemplateDetail


def serialize_session(session: Session) -> dict[str, object]:
    """Serialize a session without its blocks."""
    return {
        "id": session.id,
        "name": session.name,
        "budgets": serialize_budgets(session.budgets),
        "version": session.version,
        "revision": session.revision,
        "created": session.created,
        "updated": session.updated,
    }


def serialize_block(block: Block) -> dict[str, object]:
    """Serialize a block."""
    return {
        "id": block.id,
        **serialize_content(block.content),
        "position": block.position,
        "version": block.version,
        "created": block.created,
        "updated": block.updated,
    }


def serialize_content(content: BlockContent) -> dict[str, object]:
    """Serialize the content of a block in a session, template or snapshot."""
    data: dict[str, object] = {
        "type": content.type,
        "zone": content.zone.value,
        "content": content.text,
        "tokens": content.tokens,
    }
    if content.skill is not None:
        data["metadata"] = {
            "skillName": content.skill.name,
            "skillDescription": content.skill.description,
            "sourceType": content.skill.source_type,
            "sourceRef": content.skill.source_ref,
        }
    return data


def serialize_budgets(budgets: SessionBudgets) -> dict[str, object]:
    """Serialize the token budgets of the zones and of the session."""
    return {
        "permanent": budgets.permanent,
        "stable": budgets.stable,
        "working": budgets.working,
        "total": budgets.total,
    }


def serialize_current(current: object) -> dict[str, object]:
    """Serialize the current record for a client whose version is outdated."""
    if isinstance(current, Block):
        return {"current": serialize_block(current)}
    if isinstance(current, Session):
        return {"current": serialize_session(current)}
    if isinstance(current, Template):
        return {"current": serialize_template(current)}
    return {}


def serialize_overview(overview: SessionOverview) -> dict[str, object]:
    """Serialize a session with the sizes of its zones."""
    zones = []
    for zone in Zone:
        size = overview.zone_sizes.get(zone)
        blocks, tokens = (size.blocks, size.tokens) if size else (0, 0)
        zones.append({"zone": zone.value, "blocks": blocks, "tokens": tokens})
    return {**serialize_session(overview.session), "zones": zones}


def serialize_template(template: Template) -> dict[str, object]:
    """Serialize a template without its blocks."""
    return {
        "id": template.id,
        "name": template.name,
        "description": template.description,
        "budgets": serialize_budgets(template.budgets),
        "version": template.version,
        "created": template.created,
        "updated": template.updated,
    }


def serialize_template_detail(detail: TemplateDetail) -> dict[str, object]:
    """Serialize a template with its blocks."""
    blocks = [*map(serialize_content, detail.contents)]
    return {**serialize_template(detail.template), "blocks": blocks}


def serialize_snapshot(snapshot: SessionSnapshot) -> dict[str, object]:
    """Serialize a snapshot without its blocks."""
    return {
        "id": snapshot.id,
        "name": snapshot.name,
        "revision": snapshot.revision,
        "automatic": snapshot.automatic,
        "created": snapshot.created,
    }


def serialize_snapshot_detail(detail: SnapshotDetail) -> dict[str, object]:
    """Serialize a snapshot with its blocks."""
    return {**serialize_snapshot(detail.snapshot), "blocks": [*map(serialize_block, detail.blocks)]}


def serialize_context(context: Context) -> dict[str, object]:
    """Serialize a compiled context with the tokens of each part."""
    return {
        "session": context.session.id,
        "revision": context.session.revision,
        "zones": [_serialize_zone(zone) for zone in context.zones],
        "total": _serialize_spending(context.total),
        "tokensAreEstimates": True,
        "text": context.text,
    }


def serialize_candidate(candidate: BlockCandidate) -> dict[str, object]:
    """Serialize a skill that can be imported."""
    return {
        "id": candidate.id,
        "name": candidate.name,
        "description": candidate.description,
        "tokens": candidate.tokens,
        "accepted": not candidate.reasons,
        "reasons": candidate.reasons,
        "findings": serialize_findings(candidate.findings),
    }


def serialize_candidates(candidates: Sequence[BlockCandidate]) -> dict[str, object]:
    """Serialize the skills of a source."""
    return {"skills": [*map(serialize_candidate, candidates)]}


def serialize_folder_scan(scan: FolderScan) -> dict[str, object]:
    """Serialize the skills of a folder."""
    data = {"folder": scan.folder, "findings": serialize_findings(scan.findings)}
    return {**serialize_candidates(scan.candidates), **data}


def serialize_import_result(result: ImportResult) -> dict[str, object]:
    """Serialize the result of an import."""
    return {
        "blocks": [*map(serialize_block, result.blocks)],
        "replaced": [*result.replaced],
        "skipped": [*map(serialize_candidate, result.skipped)],
        "findings": serialize_findings(result.findings),
    }


def serialize_event(event: Event) -> dict[str, object]:
    """Serialize an event."""
    return {
        "kind": event.kind,
        "subject": event.subject,
        "session": event.session,
        "revision": event.revision,
        "data": dict(event.data),
        "at": event.at,
    }


def serialize_block_types() -> dict[str, object]:
    """Serialize the block types."""
    fields = ("id", "label", "zone", "icon", "colour")
    types = [{key: getattr(row, key) for key in fields} for row in BLOCK_TYPES.values()]
    return {"types": types}


def _serialize_zone(zone: ZoneContext) -> dict[str, object]:
    blocks = [
        {"id": block.id, "type": block.content.type, "tokens": block.content.tokens}
        for block in zone.blocks
    ]
    return {"zone": zone.zone.value, **_serialize_spending(zone.spending), "blocks": blocks}


def _serialize_spending(spending: Spending) -> dict[str, object]:
    return {"tokens": spending.tokens, "budget": spending.budget, "isOver": spending.is_over}
