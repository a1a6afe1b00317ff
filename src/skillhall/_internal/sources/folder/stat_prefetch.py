"""Looking ahead: a helper takes the stats of a large root while the index is being loaded."""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import EntryKind, open_root
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.sources.folder.candidate import to_signature
from skillhall._internal.sources.folder.helper_process import HelperProcess, can_fork

if TYPE_CHECKING:
    from skillhall._internal.fs.handles import Folder
    from skillhall._internal.sources.folder.candidate import Signature


class PrefetchedStats(NamedTuple):
    """The entries of a folder, in order, and the signatures of the SKILL.md in each."""

    entries: list[tuple[str, EntryKind]]
    signatures: dict[str, Signature]


class StatPrefetch:
    """Stats on their way; `result` must be called exactly once."""

    def __init__(self, path: str) -> None:
        """Begin. Raises: OSError where no helper can be started."""
        self._helper = HelperProcess(lambda: _collect_stats(path))

    def result(self) -> PrefetchedStats | None:
        """What stood there a moment ago, or `None` if the helper failed."""
        answer = self._helper.result()
        if answer is None:
            return None
        entries, signatures = marshal.loads(answer)  # noqa: S302 - from our own helper
        kinds = {kind.value: kind for kind in EntryKind}
        return PrefetchedStats([(name, kinds[kind]) for name, kind in entries], signatures)


def prefetch_stats(path: str) -> StatPrefetch | None:
    """A look at the folder at `path`, if there can be a helper."""
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
    """The signature of the SKILL.md in the folder `name`, if there is one."""
    try:
        return to_signature(folder.stat(f"{name}/{SKILL_MD}"))
    except OSError:
        return None
