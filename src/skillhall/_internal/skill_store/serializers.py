"""JSON of the skills of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.policy.effects import serialize_findings

if TYPE_CHECKING:
    from skillhall._internal.skill_store.collection import CollectionEntry, SkillDetails
    from skillhall._internal.skill_store.draft import SkillDraft
    from skillhall._internal.skill_store.folder_store import ImportReport
    from skillhall._internal.skill_store.input_checks import StoredSkill


def serialize_entry(entry: CollectionEntry) -> dict[str, object]:
    """Serialize a skill as a row of a list."""
    data: dict[str, object] = {
        "id": entry.id,
        "name": entry.name,
        "description": entry.description,
        "source": entry.source,
    }
    if entry.repository:
        data["repository"] = entry.repository
    return data


def serialize_details(details: SkillDetails) -> dict[str, object]:
    """Serialize a skill with its instructions, files and findings."""
    files = [
        {"path": f.path.text, "size": f.size, "digest": f.digest(), "executable": f.executable}
        for f in details.files
    ]
    return {
        **serialize_entry(details.entry),
        "frontmatter": details.frontmatter,
        "body": details.body,
        "tokens": details.tokens,
        "digest": details.digest,
        "files": files,
        "findings": serialize_findings(details.findings),
        "shadowed": [*map(serialize_entry, details.shadowed)],
    }


def serialize_stored(skill: StoredSkill) -> dict[str, object]:
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
    """Serialize the checks of a new skill; `prompt` is the system prompt with it."""
    return {
        "id": draft.id,
        "taken": draft.is_taken,
        "problems": [*draft.problems],
        "findings": serialize_findings(draft.findings),
        "tokens": draft.tokens,
        "prompt": prompt,
    }
