"""A session as a skill folder in a zip file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.sources.archive.zip_writer import pack_bundle
from skillhall._internal.workspace.session_archive import pack_session
from skillhall.errors import Conflict

if TYPE_CHECKING:
    from skillhall._internal.workspace.context import Context


class ExportedSession(NamedTuple):
    """A zip file and what to call it."""

    name: str
    data: bytes


def export_session(context: Context) -> ExportedSession:
    """The session's files; the same session gives the same bytes. Raises: TooLarge."""
    bundle = pack_session(context)
    return ExportedSession(f"{bundle.folder}.zip", pack_bundle(bundle))


_OUTPUT_FILE_MODE = 0o600  # what was written in sessions is its owner's


def write_output_file(path: str, data: bytes, *, overwrite: bool) -> None:
    """Write the file in one step. Raises: Conflict, OSError."""
    goal = Path(path).absolute()
    name = goal.name
    with WritableFolder(str(goal.parent)) as base:
        if not overwrite and base.entry_kind(name) is not None:
            raise Conflict(name, "use --overwrite, or choose another name")
        base.write_file(name, data, _OUTPUT_FILE_MODE)
