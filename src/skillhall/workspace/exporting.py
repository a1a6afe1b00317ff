"""A session as a skill folder in a zip file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall.sources.packing import pack_bundle
from skillhall.workspace.portable import pack_session

if TYPE_CHECKING:
    from skillhall.workspace.compiling import Context


class Exported(NamedTuple):
    """A zip file and what to call it."""

    name: str
    data: bytes


def export_session(context: Context) -> Exported:
    """The session's files; the same session gives the same bytes. Raises: TooLarge."""
    bundle = pack_session(context)
    return Exported(f"{bundle.folder}.zip", pack_bundle(bundle))
