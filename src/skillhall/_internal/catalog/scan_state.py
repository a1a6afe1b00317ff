"""Captures what the result of a scan depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.cache_file import CLOCK_GRANULARITY
from skillhall._internal.catalog.listing_cache import ScanState, pack_signatures
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import SKILL_MD

if TYPE_CHECKING:
    from skillhall._internal.sources.folder.candidate import Candidate, Signature
    from skillhall._internal.sources.folder.walker import Scan


class StateRecorder:
    """Callback for `load_catalog(on_scan=…)` that records the state of a large scan."""

    def __init__(self, min_skills: int) -> None:
        self.state: ScanState | None = None
        self._min_skills = min_skills

    def __call__(self, scan: Scan, started_ns: int) -> None:
        if len(scan.candidates) >= self._min_skills:
            self.state = capture_state(scan, started_ns)


def capture_state(scan: Scan, started_ns: int) -> ScanState | None:
    """Return the state of a scan; `None` if file signatures cannot prove it unchanged."""
    if scan.folders is None:
        return None
    signatures: dict[str, Signature] = {
        path or ".": signature for path, signature in scan.folders.items()
    }
    for candidate in scan.candidates:
        if candidate.signature is not None and _is_plain(candidate):
            signatures[f"{candidate.folder}/{SKILL_MD}"] = candidate.signature
        elif not _is_empty_folder(candidate):
            return None
    newest = max((max(signature[:2]) for signature in signatures.values()), default=0)
    if newest >= started_ns - CLOCK_GRANULARITY:
        return None
    return ScanState([*signatures], pack_signatures(signatures.values()))


def _is_plain(candidate: Candidate) -> bool:
    is_linked = candidate.real_folder is not None or candidate.real_file is not None
    return bool(candidate.folder) and candidate.file == SKILL_MD and not is_linked


def _is_empty_folder(candidate: Candidate) -> bool:
    # Found by listing its parent and itself, so it depends on nothing else.
    return not candidate.file and all(row[0] == Code.NO_SKILL_MD for row in candidate.findings)
