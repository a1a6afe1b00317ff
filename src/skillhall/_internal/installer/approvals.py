"""Approvals of installed skills: installing a skill approves its files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from skillhall._internal.installer.lock import LockEntry
from skillhall._internal.installer.project import Project
from skillhall._internal.policy.trust.trust_decision import ApprovalDecision
from skillhall._internal.skill.approved_files import ApprovedFile, compute_approved_digest
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.merge import FileState
from skillhall._internal.storage.trust_store import Approval, TrustStore
from skillhall.errors import SkillhallError


def hash_states(files: Mapping[str, FileState]) -> dict[str, ApprovedFile]:
    """Hash files in memory."""
    return {
        path: ApprovedFile(sha256_hex(file.data), len(file.data), file.executable)
        for path, file in files.items()
    }


def get_locked_files(entry: LockEntry) -> dict[str, ApprovedFile]:
    """Return the files of an entry, as they were installed."""
    return {
        file.path: ApprovedFile(file.sha256, file.size, file.mode == "100755")
        for file in entry.files
    }


def approve_skills(
    project: Project, verb: str, skills: Iterable[tuple[str, LockEntry, Mapping[str, ApprovedFile]]]
) -> list[str]:
    """Approve installed skills: the key, entry and files of each.

    Returns a note if that failed, since the skills are installed anyway. Skills in the home folder
    need no approval.
    """
    if project.is_user:
        return []
    approvals = [
        Approval(
            compute_approved_digest(files),
            entry.name or key.rpartition("/")[2],
            os.path.realpath(project.root),
            ApprovalDecision.APPROVE,
            origin="project",
            source=entry.source,
            commit=entry.commit,
            by=os.path.basename(project.settings.home),
            at=project.clock().isoformat(timespec="seconds"),
            via=f"skillhall {verb}",
            reason="its signature is broken; treated as unsigned" if entry.unsigned else "",
            files=files,
        )
        for key, entry, files in skills
    ]
    try:
        TrustStore(project.settings.data_directory).add(approvals)
    except (SkillhallError, OSError) as error:
        return [f"the skills could not be approved: {error}"]
    return []
