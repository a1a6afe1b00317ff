"""State of a scan: the paths and signatures that its result depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.cache_file import CLOCK_GRANULARITY
from skillhall._internal.catalog.listing_cache import ScanState
from skillhall._internal.fs.signatures import get_last_change
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import SKILL_MD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall._internal.fs.signatures import PackedSignature
    from skillhall._internal.sources.folder.candidate import Candidate
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
    if scan.folders is None or not is_provable(scan, started_ns):
        return None
    return build_state(scan.folders, scan.candidates)


def build_state(
    folders: Mapping[str, PackedSignature], candidates: Iterable[Candidate]
) -> ScanState:
    """Build the state of listed folders, and of those candidates that have a signature."""
    paths = [path or "." for path in folders]
    signatures = [*folders.values()]
    for candidate in candidates:
        if candidate.signature is not None:
            paths.append(f"{candidate.folder}/{SKILL_MD}")
            signatures.append(candidate.signature)
    return ScanState(paths, b"".join(signatures))


def is_provable(scan: Scan, started_ns: int) -> bool:
    """Whether file signatures can prove that another scan would give the same result."""
    return (
        scan.folders is not None
        and "" in scan.folders  # the root could be listed
        and all(is_old(signature, started_ns) for signature in scan.folders.values())
        and all(is_cacheable(c, started_ns) or is_empty_folder(c) for c in scan.candidates)
    )


def is_old(signature: PackedSignature, started_ns: int) -> bool:
    """Whether every later change must have changed the signature."""
    return get_last_change(signature) < started_ns - CLOCK_GRANULARITY


def is_cacheable(candidate: Candidate, started_ns: int) -> bool:
    """Whether the candidate depends only on a SKILL.md whose changes are noticed."""
    if candidate.signature is None or not is_old(candidate.signature, started_ns):
        return False
    is_linked = candidate.real_folder is not None or candidate.real_file is not None
    # Not a flat file, nor the root itself, whose name may be an alias.
    return bool(candidate.folder) and candidate.file == SKILL_MD and not is_linked


def is_empty_folder(candidate: Candidate) -> bool:
    """Whether the candidate is a folder without a SKILL.md.

    It was found by listing its parent and itself, so it depends on nothing else.
    """
    return not candidate.file and all(row[0] == Code.NO_SKILL_MD for row in candidate.findings)
