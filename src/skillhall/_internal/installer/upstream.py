"""The skill of a lock entry as its source has it: now, or at the commit that was locked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillhall._internal.sources.opener import open_reference
from skillhall._internal.sources.ref import GitHubRef, GitRef, parse_source_ref
from skillhall.errors import SkillNotFound, SkillRejected

if TYPE_CHECKING:
    from skillhall._internal.installer.lock import LockEntry
    from skillhall._internal.installer.project import Project
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.opener import OpenedSource, Progress
    from skillhall._internal.sources.ref import SourceRef

_MISSING_HINT = "its source does not have it any more: remove it, or add it from elsewhere"


@dataclass(slots=True)
class Upstream:
    """The sources of a shelf's skills; one that was asked once stays at that commit."""

    project: Project
    progress: Progress | None = None
    _commits: dict[str, str] = field(default_factory=dict)

    def find(self, entry: LockEntry, commit: str = "") -> tuple[OpenedSource, Bundle]:
        """The source and the skill in it, as it is or at a commit. Raises: SkillhallError."""
        reference = self._build_reference(entry, commit or self._commits.get(entry.source, ""))
        # What a lock calls a place is relative to the shelf, wherever the person stands.
        settings = self.project.settings._replace(working_directory=self.project.root)
        opened = open_reference(reference, settings, self.progress)
        if not commit and opened.commit and not opened.stale:
            self._commits[entry.source] = opened.commit
        bundle = opened.find_bundle(entry.path)
        if bundle is None:
            raise SkillNotFound(entry.path or entry.name, hint=_MISSING_HINT)
        if not bundle.files:
            raise SkillRejected(entry.name, [found.message for found in bundle.findings])
        return opened, opened.load_bundle(bundle)

    def _build_reference(self, entry: LockEntry, commit: str) -> SourceRef:
        networks = self.project.settings.allowed_networks
        reference = parse_source_ref(entry.source, allow_loopback_http=bool(networks))
        if not isinstance(reference, GitHubRef | GitRef):
            return reference
        # A name alone would be looked for in several places; here the place is known.
        path = entry.path if "/" in entry.path else ""
        return replace(reference, path=path, ref=commit or reference.ref)
