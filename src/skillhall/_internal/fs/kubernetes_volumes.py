"""Folders that Kubernetes mounts: each file is a link into `..data`, a link to a dated folder.

The kubelet replaces `..data` when a ConfigMap or a Secret changes, and then removes the folder that
it led to. These links are read here and walked by handles, so that nothing leads out of the folder.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from skillhall._internal.policy.scan_rules import VOLUME, is_volume_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.fs.handles import Folder

VOLUME_TRIES = 10  # for a volume that is updated again and again


def open_volume(folder: Folder) -> Folder:
    """The dated folder that `..data` in an open folder leads to. Raises: OSError."""
    for _ in range(VOLUME_TRIES):
        try:
            return folder.folder(volume_version(folder))
        except FileNotFoundError:  # the volume was updated in between, or there is none
            continue
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), VOLUME)


def volume_version(folder: Folder) -> str:
    """The name of that folder. Raises: OSError if there is no volume."""
    name = folder.link(VOLUME)
    if name == VOLUME or not is_volume_entry(name):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), VOLUME)
    return name


def leads_into_volume(folder: Folder, name: str) -> bool:
    """Whether an entry of an open folder is the link to its namesake in the volume."""
    try:
        return folder.link(name) == f"{VOLUME}/{name}"
    except OSError:
        return False


def is_mounted(path: str) -> bool:
    """The same for a path."""
    try:
        return os.readlink(path) == f"{VOLUME}/{os.path.basename(path)}"
    except OSError:
        return False


def lasting_parts(base: str, parts: Sequence[str]) -> list[str]:
    """A real path below `base`, with `..data` for dated folders: it outlives an update."""
    lasting = list(parts)
    for at, part in enumerate(parts):
        if is_volume_entry(part):
            try:
                is_current = os.readlink(os.path.join(base, *parts[:at], VOLUME)) == part
            except OSError:
                is_current = False
            lasting[at] = VOLUME if is_current else part
    return lasting
