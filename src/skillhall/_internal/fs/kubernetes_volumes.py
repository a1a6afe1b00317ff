"""Folders that Kubernetes mounts: each file is a link into `..data`, a link to a dated folder.

The kubelet replaces `..data` when a ConfigMap or a Secret changes, and then removes the folder that
it led to. These links are read here and walked by handles, so that nothing leads out of the folder.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from skillhall._internal.policy.scan_rules import VOLUME_LINK, is_volume_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.fs.handles import Folder

MAX_VOLUME_ATTEMPTS = 10  # for a volume that is updated again and again


def open_volume(folder: Folder) -> Folder:
    """The dated folder that `..data` in an open folder leads to. Raises: OSError."""
    for _ in range(MAX_VOLUME_ATTEMPTS):
        try:
            return folder.open_folder(read_volume_version(folder))
        except FileNotFoundError:  # the volume was updated in between, or there is none
            continue
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), VOLUME_LINK)


def read_volume_version(folder: Folder) -> str:
    """The name of that folder. Raises: OSError if there is no volume."""
    name = folder.read_link(VOLUME_LINK)
    if name == VOLUME_LINK or not is_volume_entry(name):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), VOLUME_LINK)
    return name


def is_volume_link(folder: Folder, name: str) -> bool:
    """Whether an entry of an open folder is the link to its namesake in the volume."""
    try:
        return folder.read_link(name) == f"{VOLUME_LINK}/{name}"
    except OSError:
        return False


def is_volume_link_path(path: str) -> bool:
    """The same for a path."""
    try:
        return os.readlink(path) == f"{VOLUME_LINK}/{os.path.basename(path)}"
    except OSError:
        return False


def to_stable_parts(base: str, parts: Sequence[str]) -> list[str]:
    """A real path below `base`, with `..data` for dated folders: it outlives an update."""
    lasting = list(parts)
    for at, part in enumerate(parts):
        if is_volume_entry(part):
            try:
                is_current = os.readlink(os.path.join(base, *parts[:at], VOLUME_LINK)) == part
            except OSError:
                is_current = False
            lasting[at] = VOLUME_LINK if is_current else part
    return lasting
