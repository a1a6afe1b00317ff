"""Sizes of the folders in which a server stores its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.folder_size import measure_folder

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings


class StorageSize(NamedTuple):
    """Size of a folder of the server, in bytes."""

    name: str  # "data" or "cache"
    size: int
    is_complete: bool  # False if the folder has too many entries to count them all


def measure_storage(settings: Settings) -> list[StorageSize]:
    """Measure the folders of the data and of the cache."""
    folders = {"data": settings.data_directory, "cache": settings.cache_directory}
    return [StorageSize(name, *measure_folder(path)) for name, path in folders.items()]
