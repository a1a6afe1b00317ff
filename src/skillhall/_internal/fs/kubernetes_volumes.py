"""Kubernetes volumes: files are links into `..data`, a link to a dated folder.

The kubelet replaces `..data` when a ConfigMap or a Secret changes, and then removes the previous
folder. These links are resolved here, by handles, so that none can point outside the volume.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from skillhall._internal.policy.folder_walk_rules import VOLUME_LINK, is_volume_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.fs.handles import Folder

MAX_VOLUME_ATTEMPTS = 10  # retries while a volume is being updated


def open_volume(folder: Folder) -> Folder:
    """Open the dated folder that the link `..data` points to. Raises: OSError."""
    for _ in range(MAX_VOLUME_ATTEMPTS):
        try:
            return folder.open_folder(read_volume_version(folder))
        except FileNotFoundError:  # the volume was just updated, or there is none
            continue
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), VOLUME_LINK)


def read_volume_version(folder: Folder) -> str:
    """Return the name of the dated folder. Raises: OSError if there is no volume."""
    name = folder.read_link(VOLUME_LINK)
    if name == VOLUME_LINK or not is_volume_entry(name):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), VOLUME_LINK)
    return name


def is_volume_link(folder: Folder, name: str) -> bool:
    """Whether an entry is the link to the file of the same name in the volume."""
    try:
        return folder.read_link(name) == f"{VOLUME_LINK}/{name}"
    except OSError:
        return False


def is_volume_link_path(path: str) -> bool:
    """Whether a path is the link to the file of the same name in its volume."""
    try:
        return os.readlink(path) == f"{VOLUME_LINK}/{os.path.basename(path)}"
    except OSError:
        return False


def to_stable_parts(base: str, parts: Sequence[str]) -> list[str]:
    """Replace dated folders in a real path with `..data`, which survives updates."""
    stable = list(parts)
    for index, part in enumerate(parts):
        if is_volume_entry(part):
            try:
                is_current = os.readlink(os.path.join(base, *parts[:index], VOLUME_LINK)) == part
            except OSError:
                is_current = False
            stable[index] = VOLUME_LINK if is_current else part
    return stable
