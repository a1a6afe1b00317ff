"""Size of the files in a folder."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

MAX_ENTRIES = 50_000


class FolderSize(NamedTuple):
    """Size of a folder in bytes."""

    size: int
    is_complete: bool  # False if the folder has too many entries to count them all


def measure_folder(path: str) -> FolderSize:
    """Add up the sizes of the files below a folder, without following links.

    What cannot be read counts as empty.
    """
    total, count, folders = 0, 0, [path]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                count += 1
                if count > MAX_ENTRIES:
                    return FolderSize(total, is_complete=False)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    return FolderSize(total, is_complete=True)
