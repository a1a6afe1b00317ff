"""Export of a session as a zip file with a skill folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.sources.archive.zip_writer import pack_bundle
from skillhall._internal.workspace.session_archive import pack_session
from skillhall.errors import Conflict

if TYPE_CHECKING:
    from skillhall._internal.workspace.compiled_context import Context


class ExportedSession(NamedTuple):
    """A zip file and its name."""

    name: str
    data: bytes


def export_session(context: Context) -> ExportedSession:
    """Return the session as a zip file. Raises: TooLarge.

    Equal sessions give equal bytes.
    """
    bundle = pack_session(context)
    return ExportedSession(f"{bundle.folder}.zip", pack_bundle(bundle))


_OUTPUT_FILE_MODE = 0o600  # sessions may contain private text


def write_output_file(path: str, data: bytes, *, overwrite: bool) -> None:
    """Write a file atomically.

    Raises: Conflict if it exists and `overwrite` is not set, OSError.
    """
    target = Path(path).absolute()
    name = target.name
    with WritableFolder(str(target.parent)) as folder:
        if not overwrite and folder.entry_kind(name) is not None:
            raise Conflict(name, "use --overwrite, or choose another name")
        folder.write_file(name, data, _OUTPUT_FILE_MODE)
