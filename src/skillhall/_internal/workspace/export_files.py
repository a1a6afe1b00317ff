"""Files that a person asks for: whole or not there, and nothing of theirs overwritten unasked."""

from __future__ import annotations

from pathlib import Path

from skillhall._internal.fs.write import WritableFolder
from skillhall.errors import Conflict

_FILE = 0o600  # what was written in sessions is its owner's


def write_file(path: str, data: bytes, *, overwrite: bool) -> None:
    """Write the file in one step. Raises: Conflict, OSError."""
    goal = Path(path).absolute()
    name = goal.name
    with WritableFolder(str(goal.parent)) as base:
        if not overwrite and base.kind(name) is not None:
            raise Conflict(name, "use --overwrite, or choose another name")
        base.put(name, data, _FILE)
