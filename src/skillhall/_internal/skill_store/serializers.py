"""Serializers for the skills of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.policy.effects import serialize_findings
from skillhall._internal.render.json_manifest import build_manifest
from skillhall._internal.skill.bundle import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.skill_store.collection import SkillDetails
    from skillhall._internal.skill_store.draft import SkillDraft
    from skillhall._internal.skill_store.input_checks import SkillSummary
    from skillhall._internal.skill_store.skill_analysis import SkillFacts
    from skillhall._internal.skill_store.skill_table import Facet
    from skillhall._internal.skill_store.store import ImportReport
    from skillhall._internal.skill_store.versions.skill_versions import (
        VersionChange,
        VersionComparison,
        VersionDetails,
        VersionList,
    )
    from skillhall._internal.skill_store.versions.version_diff import FileChange
    from skillhall._internal.storage.records import DeletedSkill, SkillVersion, VersionReview


def serialize_skill(skill: SkillSummary) -> dict[str, object]:
    """Serialize a skill as a row of a list."""
    row = {**serialize_stored(skill), "source": skill.source}
    row |= {"repository": skill.repository} if skill.repository else {}
    row |= {"revoked": skill.revocation._asdict()} if skill.revocation else {}
    return row | ({"copies": [*skill.copies]} if skill.copies else {})


def serialize_table_row(skill: SkillSummary, facts: SkillFacts) -> dict[str, object]:
    """Serialize a skill as a row of the table, with its facts."""
    return {
        **serialize_skill(skill),
        "risk": facts.risk,
        "tokens": facts.tokens,
        "files": facts.files,
        "warnings": facts.warnings,
        "codes": [*facts.codes],
        "profiles": [*facts.profiles],
        "scripts": facts.has_scripts,
        "evals": facts.has_evals,
        "dropped": [*facts.dropped_by],
    }


def serialize_facets(facets: Iterable[Facet]) -> dict[str, dict[str, int]]:
    """Serialize the facets of a table: the number of skills with each value."""
    return {facet.name: {one.value: one.total for one in facet.values} for facet in facets}


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
        **({"version": serialize_version(details.version)} if details.version else {}),
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


def serialize_deleted(deleted: DeletedSkill) -> dict[str, object]:
    """Serialize a skill in the bin."""
    return {
        "id": deleted.skill,
        "version": deleted.number,
        "deletedBy": deleted.by,
        "deleted": deleted.at,
    }


def serialize_version(version: SkillVersion) -> dict[str, object]:
    """Serialize a version as a row of a list."""
    return {
        "number": version.number,
        "digest": version.digest,
        "state": version.state.value,
        "author": version.author,
        "created": version.created,
        "source": version.source,
        "commit": version.commit,
        "signer": version.signer,
    }


def serialize_waiting(version: SkillVersion) -> dict[str, object]:
    """Serialize a version that waits for a review."""
    return {"id": version.skill, **serialize_version(version)}


def serialize_versions(listed: VersionList, review: str) -> dict[str, object]:
    """Serialize the versions of a skill, newest first, with what was decided about them."""
    return {
        "id": listed.skill,
        "review": review,
        "current": listed.current,
        "versions": [
            {
                **serialize_version(version),
                "reviews": [*map(_serialize_review, listed.reviews_of(version.number))],
            }
            for version in listed.versions
        ],
    }


def serialize_version_details(details: VersionDetails) -> dict[str, object]:
    """Serialize one version with its files, findings and reviews."""
    return {
        "id": details.version.skill,
        **serialize_version(details.version),
        "signer": details.signer,
        "current": details.is_current,
        "risk": details.scan.risk.value,
        "files": [
            {
                "path": path,
                "size": len(data),
                "digest": f"sha256:{sha256_hex(data)}",
                "executable": path in details.executables,
            }
            for path, data in details.files.items()
        ],
        "findings": serialize_findings(details.scan.findings),
        "reviews": [*map(_serialize_review, details.reviews)],
    }


def serialize_comparison(comparison: VersionComparison) -> dict[str, object]:
    """Serialize the comparison of two versions; new findings are separate."""
    base = comparison.base
    return {
        "id": comparison.details.version.skill,
        "number": comparison.details.version.number,
        "against": None if base is None else base.version.number,
        "riskBefore": comparison.risk_before.value,
        "riskAfter": comparison.details.scan.risk.value,
        "newFindings": serialize_findings(comparison.new_findings),
        "otherFindings": serialize_findings(comparison.other_findings),
        "changes": [*map(_serialize_file_change, comparison.changes)],
        "modeChanges": [*comparison.mode_changes],
    }


def serialize_version_change(change: VersionChange) -> dict[str, object]:
    """Serialize a changed version, and the number of the version that is served."""
    return {
        "id": change.version.skill,
        **serialize_version(change.version),
        "current": change.current,
    }


def _serialize_review(review: VersionReview) -> dict[str, object]:
    return {
        "decision": review.decision.value,
        "by": review.by,
        "at": review.at,
        "comment": review.comment,
        "digest": review.digest,
    }


def _serialize_file_change(change: FileChange) -> dict[str, object]:
    return {
        "path": change.path,
        "kind": change.kind,
        "truncated": change.is_truncated,
        "lines": [line._asdict() for line in change.lines],
    }
