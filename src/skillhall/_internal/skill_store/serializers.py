"""Serializers for the skills of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.policy.effects import serialize_findings
from skillhall._internal.render.json_manifest import build_manifest

if TYPE_CHECKING:
    from skillhall._internal.skill_store.collection import SkillDetails
    from skillhall._internal.skill_store.draft import SkillDraft
    from skillhall._internal.skill_store.input_checks import SkillSummary
    from skillhall._internal.skill_store.store import ImportReport


def serialize_skill(skill: SkillSummary) -> dict[str, object]:
    """Serialize a skill as a row of a list."""
    row = {**serialize_stored(skill), "source": skill.source}
    row |= {"repository": skill.repository} if skill.repository else {}
    row |= {"revoked": skill.revocation._asdict()} if skill.revocation else {}
    return row | ({"copies": [*skill.copies]} if skill.copies else {})


def serialize_details(details: SkillDetails) -> dict[str, object]:
    """Serialize a skill with its instructions, files and findings."""
    return {
        **serialize_skill(details.entry),
        "frontmatter": details.frontmatter,
        "body": details.body,
        "tokens": details.tokens,
        "digest": details.digest,
        "files": build_manifest(details.files),
        "findings": serialize_findings(details.findings),
        "shadowed": [*map(serialize_skill, details.shadowed)],
    }


def serialize_stored(skill: SkillSummary) -> dict[str, object]:
    """Serialize a skill that was created, edited or imported."""
    return {"id": skill.id, "name": skill.name, "description": skill.description}


def serialize_import(report: ImportReport) -> dict[str, object]:
    """Serialize the result of an import."""
    return {
        "imported": [*map(serialize_stored, report.imported)],
        "replaced": [*report.replaced],
        "findings": serialize_findings(report.findings),
    }


def serialize_draft(draft: SkillDraft, prompt: str) -> dict[str, object]:
    """Serialize a draft; `prompt` is a system prompt that contains the skill."""
    return {
        "id": draft.id,
        "taken": draft.is_taken,
        "problems": [*draft.problems],
        "findings": serialize_findings(draft.findings),
        "tokens": draft.tokens,
        "prompt": prompt,
    }
