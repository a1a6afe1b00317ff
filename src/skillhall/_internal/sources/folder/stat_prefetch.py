"""Stat prefetch: a helper process stats a large root while the head cache loads."""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import EntryKind, open_root
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.sources.folder.candidate import to_signature
from skillhall._internal.sources.folder.helper_process import HelperProcess, can_fork

if TYPE_CHECKING:
    from skillhall._internal.fs.handles import Folder
    from skillhall._internal.sources.folder.candidate import Signature


class PrefetchedStats(NamedTuple):
    """Sorted entries of a folder, and the signature of each SKILL.md."""

    entries: list[tuple[str, EntryKind]]
    signatures: dict[str, Signature]


class StatPrefetch:
    """Running prefetch; `result` must be called exactly once."""

    def __init__(self, path: str) -> None:
        """Start the helper. Raises: OSError."""
        self._helper = HelperProcess(lambda: _collect_stats(path))

    def result(self) -> PrefetchedStats | None:
        """Return the stats, or `None` if the helper failed."""
        result = self._helper.result()
        if result is None:
            return None
        entries, signatures = marshal.loads(result)  # noqa: S302 - from our own helper
        kinds = {kind.value: kind for kind in EntryKind}
        return PrefetchedStats([(name, kinds[kind]) for name, kind in entries], signatures)


def prefetch_stats(path: str) -> StatPrefetch | None:
    """Start a prefetch of the folder at `path`, if a helper can run."""
    try:
        return StatPrefetch(path) if can_fork() else None
    except OSError:
        return None


def _collect_stats(path: str) -> bytes:
    folder = open_root(path)
    entries = sorted(folder.list_entries())
    signatures = {
        name: signature
        for name, kind in entries
        if kind is EntryKind.FOLDER and (signature := read_signature(folder, name)) is not None
    }
    return marshal.dumps(([(name, kind.value) for name, kind in entries], signatures))


def read_signature(folder: Folder, name: str) -> Signature | None:
    """Return the signature of the SKILL.md in the folder `name`, if there is one."""
    try:
        return to_signature(folder.stat(f"{name}/{SKILL_MD}"))
    except OSError:
        return None
