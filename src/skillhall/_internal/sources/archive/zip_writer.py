"""Reproducible zip files: the same files always give the same bytes."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillhall._internal.skill.bundle import Bundle, SkillFile

_FIXED_TIMESTAMP = (1980, 1, 1, 0, 0, 0)  # the earliest in the zip format
_REGULAR_TYPE, _FILE_MODE, _EXECUTABLE_MODE = 0o100000, 0o644, 0o755
_RATIO_MIN_SIZE = 64 * 1024  # bytes; smaller files may have any ratio
_MAX_RATIO = 30  # unpacked to packed; well below the limit of our own reader
_UNIX_SYSTEM = 3  # entries have Unix modes


def pack_bundle(bundle: Bundle) -> bytes:
    """Pack a bundle as a zip file, with SKILL.md at the root.

    Raises: SkillhallError if a file cannot be read.
    """
    return pack_entries(_read_entries(bundle.files))


def pack_bundles(bundles: Mapping[str, Bundle]) -> bytes:
    """Pack several bundles as a zip file, each in the folder with its key.

    Raises: SkillhallError if a file cannot be read.
    """
    files = {
        f"{folder}/{path}": file
        for folder, bundle in bundles.items()
        for path, file in bundle.files.items()
    }
    return pack_entries(_read_entries(files))


def _read_entries(files: Mapping[str, SkillFile]) -> Iterator[tuple[str, bytes, int]]:
    for path, file in sorted(files.items()):
        yield path, file.read(), _EXECUTABLE_MODE if file.executable else _FILE_MODE


def pack_entries(entries: Iterable[tuple[str, bytes, int]]) -> bytes:
    """Pack files as a zip file, in this order, each with its path, content and mode."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data, mode in entries:
            entry = zipfile.ZipInfo(path, _FIXED_TIMESTAMP)
            # Readers may mistake a file with a very high compression ratio for a zip bomb.
            is_suspicious = len(data) > _RATIO_MIN_SIZE and (
                len(zlib.compress(data, 1)) * _MAX_RATIO < len(data)
            )
            entry.compress_type = zipfile.ZIP_STORED if is_suspicious else zipfile.ZIP_DEFLATED
            entry.create_system = _UNIX_SYSTEM
            entry.external_attr = (_REGULAR_TYPE | mode) << 16
            archive.writestr(entry, data)
    return packed.getvalue()
