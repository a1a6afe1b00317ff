"""Looking ahead: a helper takes the stats of a large root while the index is being loaded."""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import Kind, open_root
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.sources.folder.candidate import signature_of
from skillhall._internal.sources.folder.helper_process import HelperProcess, may_fork

if TYPE_CHECKING:
    from skillhall._internal.fs.handles import Folder
    from skillhall._internal.sources.folder.candidate import Signature


class Stats(NamedTuple):
    """The entries of a folder, in order, and the signatures of the SKILL.md in each."""

    entries: list[tuple[str, Kind]]
    signatures: dict[str, Signature]


class LookAhead:
    """Stats on their way; `result` must be called exactly once."""

    def __init__(self, path: str) -> None:
        """Begin. Raises: OSError where no helper can be started."""
        self._helper = HelperProcess(lambda: _look(path))

    def result(self) -> Stats | None:
        """What stood there a moment ago, or `None` if the helper failed."""
        answer = self._helper.result()
        if answer is None:
            return None
        entries, signatures = marshal.loads(answer)  # noqa: S302 - from our own helper
        kinds = {kind.value: kind for kind in Kind}
        return Stats([(name, kinds[kind]) for name, kind in entries], signatures)


def look_ahead(path: str) -> LookAhead | None:
    """A look at the folder at `path`, if there can be a helper."""
    try:
        return LookAhead(path) if may_fork() else None
    except OSError:
        return None


def _look(path: str) -> bytes:
    folder = open_root(path)
    entries = sorted(folder.entries())
    signatures = {
        name: signature
        for name, kind in entries
        if kind is Kind.FOLDER and (signature := peek_signature(folder, name)) is not None
    }
    return marshal.dumps(([(name, kind.value) for name, kind in entries], signatures))


def peek_signature(folder: Folder, name: str) -> Signature | None:
    """The signature of the SKILL.md in the folder `name`, if there is one."""
    try:
        return signature_of(folder.peek(f"{name}/{SKILL_MD}"))
    except OSError:
        return None
