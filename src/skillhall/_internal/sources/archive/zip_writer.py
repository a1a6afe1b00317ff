"""A bundle as a zip file: the same bytes for the same files, whenever and wherever it is packed."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillhall._internal.skill.bundle import Bundle

_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can say
_REGULAR, _FILE, _PROGRAM = 0o100000, 0o644, 0o755
_SMALL = 64 * 1024  # bytes that are no bomb, however small they become
_RATIO = 30  # unpacked to packed; half of what our own reader takes
_UNIX = 3  # the system whose modes an entry carries


def pack_bundle(bundle: Bundle) -> bytes:
    """The files as a zip file, SKILL.md at its top. Raises: what reading them raises."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, file in sorted(bundle.files.items()):
            data = file.read()
            entry = zipfile.ZipInfo(path, _NO_TIME)
            entry.compress_type = _method(data)
            entry.create_system = _UNIX
            entry.external_attr = (_REGULAR | (_PROGRAM if file.executable else _FILE)) << 16
            archive.writestr(entry, data)
    return packed.getvalue()


def _method(data: bytes) -> int:
    """How bytes are packed: those that become very small would look like a bomb to a reader."""
    if len(data) > _SMALL and len(zlib.compress(data, 1)) * _RATIO < len(data):
        return zipfile.ZIP_STORED
    return zipfile.ZIP_DEFLATED
