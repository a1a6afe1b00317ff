"""A session as a skill folder in a zip file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.sources.archive.zip_writer import pack_bundle
from skillhall._internal.workspace.session_archive import pack_session

if TYPE_CHECKING:
    from skillhall._internal.workspace.context import Context


class Exported(NamedTuple):
    """A zip file and what to call it."""

    name: str
    data: bytes


def export_session(context: Context) -> Exported:
    """The session's files; the same session gives the same bytes. Raises: TooLarge."""
    bundle = pack_session(context)
    return Exported(f"{bundle.folder}.zip", pack_bundle(bundle))
