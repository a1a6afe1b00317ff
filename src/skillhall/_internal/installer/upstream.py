"""Upstream versions of installed skills: the latest, or the locked commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillhall._internal.sources.kinds import parse_source_ref
from skillhall._internal.sources.opener import open_reference
from skillhall.errors import SkillNotFound, SkillRejected

if TYPE_CHECKING:
    from skillhall._internal.installer.lock import LockEntry
    from skillhall._internal.installer.project import Project
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.base import OpenedSource, Progress

_MISSING_HINT = "its source does not have it any more: remove it, or add it from elsewhere"


@dataclass(slots=True)
class Upstream:
    """Sources of installed skills; each repository is read at one commit per instance."""

    project: Project
    progress: Progress | None = None
    _commits: dict[str, str] = field(default_factory=dict)

    def find(self, entry: LockEntry, commit: str = "") -> tuple[OpenedSource, Bundle]:
        """Open the source of a skill, latest or at a commit. Raises: SkillhallError."""
        # Paths in a lock file are relative to the project, not to the working directory.
        settings = self.project.settings._replace(working_directory=self.project.root)
        networks = settings.allowed_networks
        reference = parse_source_ref(entry.source, allow_loopback_http=bool(networks))
        # A name without a slash would be searched for in the repository; `find_bundle` is exact.
        path = entry.path if "/" in entry.path else ""
        reference = reference.at(path, commit or self._commits.get(entry.source, ""))
        opened = open_reference(reference, settings, self.progress)
        if not commit and opened.commit and not opened.stale:
            self._commits[entry.source] = opened.commit
        bundle = opened.find_bundle(entry.path)
        if bundle is None:
            raise SkillNotFound(entry.path or entry.name, hint=_MISSING_HINT)
        if not bundle.files:
            raise SkillRejected(entry.name, [finding.message for finding in bundle.findings])
        return opened, opened.load_bundle(bundle)
