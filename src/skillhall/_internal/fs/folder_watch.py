"""Folder watch: change notifications by Linux (inotify), without following links."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import select
import struct
import sys
from functools import cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from skillhall._internal.fs.handles import is_inside

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K")

# Constants of inotify(7).
_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_ONLY_FOLDERS, _DO_NOT_FOLLOW, _EXCLUDE_UNLINKED = 0x1000000, 0x2000000, 0x4000000
_CHANGES = (
    _MODIFY
    | _ATTRIB
    | _CLOSE_WRITE
    | _MOVED_FROM
    | _MOVED_TO
    | _CREATE
    | _DELETE
    | _DELETE_SELF
    | _MOVE_SELF
)
_FLAGS = _ONLY_FOLDERS | _DO_NOT_FOLLOW | _EXCLUDE_UNLINKED
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_ESCAPED = re.compile(r"\\([0-7]{3})")  # in paths of mountinfo
_BUFFER_SIZE = 256 * 1024
# A user may have a limited number of watches, which other programs need too.
MAX_WATCHES = 150_000
# Other file systems may be changed by other machines, of which this kernel does not know.
_LOCAL_FILE_SYSTEMS = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}
)


class FolderEvent(NamedTuple, Generic[K]):
    """An entry of a watched folder that has changed."""

    key: K  # of the folder
    name: str  # of the entry; "" for the folder itself


class FolderWatch(Generic[K]):
    """Watched folders, each with a key. Only one thread may call `read` and `close`."""

    def __init__(self) -> None:
        """Start with no folders. Raises: OSError if the system does not support inotify."""
        self._add_watch = _load_function("inotify_add_watch")
        start = _load_function("inotify_init1")
        self._descriptor = _check(start(os.O_CLOEXEC | os.O_NONBLOCK))
        self._interrupted = os.eventfd(0, os.EFD_CLOEXEC)
        self._keys: dict[int, K] = {}

    def add(self, path: str, key: K) -> None:
        """Watch the entries of a folder, but not those of its subfolders.

        Raises: OSError if it is not a folder, or if there are too many watches.
        """
        if len(self._keys) >= MAX_WATCHES:
            raise OSError(errno.ENOSPC, "too many folders to watch", path)
        watch = self._add_watch(self._descriptor, os.fsencode(path), _CHANGES | _FLAGS)
        # A folder that was moved keeps its watch: only its key changes.
        self._keys[_check(watch, path)] = key

    def read(self, timeout: float) -> list[FolderEvent[K]] | None:
        """Wait up to `timeout` seconds for events; `None` if some were lost.

        Raises: OSError.
        """
        ready, _, _ = select.select([self._descriptor, self._interrupted], [], [], timeout)
        if self._descriptor not in ready:
            return []
        events: dict[FolderEvent[K], None] = {}
        data, start, is_complete = os.read(self._descriptor, _BUFFER_SIZE), 0, True
        while start < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, start)
            start += _EVENT.size
            name = os.fsdecode(data[start : start + length].rstrip(b"\0"))
            start += length
            if mask & _OVERFLOW:
                is_complete = False
            elif mask & _IGNORED:  # the folder is gone
                self._keys.pop(watch, None)
            elif watch in self._keys:
                events[FolderEvent(self._keys[watch], name)] = None
        return [*events] if is_complete else None

    def interrupt(self) -> None:
        """Make the current call of `read`, and all later ones, return immediately."""
        os.eventfd_write(self._interrupted, 1)

    def close(self) -> None:
        """Stop watching."""
        os.close(self._descriptor)
        os.close(self._interrupted)


def is_on_local_disk(path: str) -> bool:
    """Whether the kernel notices every change below a path; false if that is unknown."""
    found, kind = "", ""
    try:
        real = os.path.realpath(path)
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                fields, _, file_system = line.partition(" - ")
                folder = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), fields.split()[4])
                # Of several mounts at one place, the last one is visible.
                if is_inside(real, folder) and len(folder) >= len(found):
                    found, kind = folder, file_system.split()[0]
    except (OSError, IndexError):
        return False
    return kind in _LOCAL_FILE_SYSTEMS


def _check(result: int, path: str | None = None) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result


@cache
def _load_function(name: str) -> Callable[..., int]:
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if sys.platform != "linux" or function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
    call: Callable[..., int] = function
    return call
