"""A bundle as a zip file: the same bytes for the same files, whenever and wherever it is packed."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillhall._internal.skill.bundle import Bundle

_FIXED_TIMESTAMP = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can say
_REGULAR_TYPE, _FILE_MODE, _EXECUTABLE_MODE = 0o100000, 0o644, 0o755
_RATIO_MIN_SIZE = 64 * 1024  # bytes that are no bomb, however small they become
_MAX_RATIO = 30  # unpacked to packed; half of what our own reader takes
_UNIX_SYSTEM = 3  # the system whose modes an entry carries


def pack_bundle(bundle: Bundle) -> bytes:
    """The files as a zip file, SKILL.md at its top. Raises: what reading them raises."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, file in sorted(bundle.files.items()):
            data = file.read()
            entry = zipfile.ZipInfo(path, _FIXED_TIMESTAMP)
            entry.compress_type = _compression_method(data)
            entry.create_system = _UNIX_SYSTEM
            entry.external_attr = (
                _REGULAR_TYPE | (_EXECUTABLE_MODE if file.executable else _FILE_MODE)
            ) << 16
            archive.writestr(entry, data)
    return packed.getvalue()


def _compression_method(data: bytes) -> int:
    """How bytes are packed: those that become very small would look like a bomb to a reader."""
    if len(data) > _RATIO_MIN_SIZE and len(zlib.compress(data, 1)) * _MAX_RATIO < len(data):
        return zipfile.ZIP_STORED
    return zipfile.ZIP_DEFLATED
