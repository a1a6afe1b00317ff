"""JSON of sessions, blocks, templates, snapshots, events and contexts.

REST, the CLI and exports use these functions, so that every record has the same keys everywhere.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from skillhall._internal.policy.effects import serialize_findings
from skillhall._internal.workspace import Block, Session, SkillOrigin, Template, Zone, ZoneSize
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall._internal.workspace.validation import build_content, parse_zone, validate_block_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.workspace import BlockContent, Event, SessionSnapshot
    from skillhall._internal.workspace.compiled_context import Context, Spending
    from skillhall._internal.workspace.importer import FolderScan, ImportResult
    from skillhall._internal.workspace.sessions import SessionOverview
    from skillhall._internal.workspace.skill_blocks import BlockCandidate
    from skillhall._internal.workspace.snapshots import SnapshotDetail
    from skillhall._internal.workspace.templates import TemplateDetail


# JSON keys of a block's skill, and the fields of `SkillOrigin`.
_SKILL_KEYS = {
    "skillName": "name",
    "skillDescription": "description",
    "sourceType": "source_type",
    "sourceRef": "source_ref",
}


def serialize_session(session: Session) -> dict[str, object]:
    """Serialize a session without its blocks."""
    return asdict(session)


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
        skill = content.skill
        data["metadata"] = {key: getattr(skill, field) for key, field in _SKILL_KEYS.items()}
    return data


def parse_content(data: Mapping[str, object]) -> BlockContent:
    """Parse serialized block content and count its tokens again.

    Raises: SkillhallError, KeyError, TypeError if it is invalid.
    """
    metadata, skill = data.get("metadata"), None
    if isinstance(metadata, dict):
        skill = SkillOrigin(**{field: str(metadata[key]) for key, field in _SKILL_KEYS.items()})
    kind, zone, text = data["type"], data["zone"], data["content"]
    if not isinstance(kind, str) or not isinstance(zone, str) or not isinstance(text, str):
        raise TypeError(kind)
    return build_content(validate_block_type(kind), parse_zone(zone), text, skill)


def serialize_current(current: object) -> dict[str, object]:
    """Serialize the current record, if any, for a client whose version is outdated."""
    if isinstance(current, Block):
        return {"current": serialize_block(current)}
    return {"current": asdict(current)} if isinstance(current, Session | Template) else {}


def serialize_overview(overview: SessionOverview) -> dict[str, object]:
    """Serialize a session with the sizes of its zones."""
    sizes = {zone: overview.zone_sizes.get(zone, ZoneSize()) for zone in Zone}
    zones = [
        {"zone": zone.value, "blocks": size.blocks, "tokens": size.tokens}
        for zone, size in sizes.items()
    ]
    return {**serialize_session(overview.session), "zones": zones}


def serialize_template(template: Template) -> dict[str, object]:
    """Serialize a template without its blocks."""
    return asdict(template)


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
    zones = []
    for zone in context.zones:
        blocks = [
            {"id": block.id, "type": block.content.type, "tokens": block.content.tokens}
            for block in zone.blocks
        ]
        spending = _serialize_spending(zone.spending)
        zones.append({"zone": zone.zone.value, **spending, "blocks": blocks})
    return {
        "session": context.session.id,
        "revision": context.session.revision,
        "zones": zones,
        "total": _serialize_spending(context.total),
        "tokensAreEstimates": True,
        "text": context.text,
    }


def _serialize_spending(spending: Spending) -> dict[str, object]:
    return {"tokens": spending.tokens, "budget": spending.budget, "isOver": spending.is_over}


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
    data = asdict(event)
    del data["seq"]  # sent as the id of the server-sent event
    return data


def serialize_block_types() -> dict[str, object]:
    """Serialize the block types."""
    fields = ("id", "label", "zone", "icon", "colour")
    types = [{key: getattr(row, key) for key in fields} for row in BLOCK_TYPES.values()]
    return {"types": types}
