"""Stat prefetch: a helper process stats a large root while the head cache loads."""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import EntryKind, open_root
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.sources.folder.candidate import to_signature
from skillhall._internal.sources.folder.helper_process import HelperProcess, can_fork

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.fs.handles import Folder
    from skillhall._internal.sources.folder.candidate import Signature


class PrefetchedStats(NamedTuple):
    """Sorted entries of a folder, and the signature of each SKILL.md."""

    entries: list[tuple[str, EntryKind]]
    signatures: dict[str, Signature]  # by name of the subfolder with the SKILL.md


def prefetch_stats(path: str) -> Callable[[], PrefetchedStats | None] | None:
    """Start a helper process that stats the folder at `path`; `None` if none can run.

    The returned function must be called exactly once. It waits for the helper, and returns `None`
    if the helper failed.
    """

    def collect() -> bytes:
        folder = open_root(path)
        entries = sorted(folder.list_entries())
        names = [name for name, kind in entries if kind is EntryKind.FOLDER]
        signatures = {name: read_signature(folder, name) for name in names}
        found = {name: signature for name, signature in signatures.items() if signature}
        return marshal.dumps(([(name, kind.value) for name, kind in entries], found))

    def get_result() -> PrefetchedStats | None:
        if (result := helper.result()) is None:
            return None
        entries, signatures = marshal.loads(result)  # noqa: S302 - from our own helper
        kinds = {kind.value: kind for kind in EntryKind}
        return PrefetchedStats([(name, kinds[kind]) for name, kind in entries], signatures)

    try:
        if not can_fork():
            return None
        helper = HelperProcess(collect)
    except OSError:
        return None
    return get_result


def read_signature(folder: Folder, name: str) -> Signature | None:
    """Return the signature of the SKILL.md in the folder `name`, if there is one."""
    try:
        return to_signature(folder.stat(f"{name}/{SKILL_MD}"))
    except OSError:
        return None
