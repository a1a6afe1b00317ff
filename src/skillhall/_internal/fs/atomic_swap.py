"""Atomic swap of two directory entries, where the OS supports it."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    _SwapFunction: TypeAlias = Callable[[int, bytes, int, bytes, int], int]

_RENAME_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_SYSTEM_CALLS = {"linux": "renameat2", "darwin": "renameatx_np"}
# The kernel or the file system does not support swapping; nothing was changed.
_UNSUPPORTED_ERRNOS = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV, errno.EPERM}


def swap_names(folder: int, first: str, second: str) -> bool:
    """Swap two entries of a folder; return False if the system cannot.

    Raises: OSError.
    """
    call = _load_swap_function()
    if call is None:
        return False
    if call(folder, os.fsencode(first), folder, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED_ERRNOS:
        return False
    raise OSError(number, os.strerror(number), second)


@cache
def _load_swap_function() -> _SwapFunction | None:
    name = _SYSTEM_CALLS.get(sys.platform)
    if name is None:
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return None
    integer, string = ctypes.c_int, ctypes.c_char_p
    function.argtypes = [integer, string, integer, string, ctypes.c_uint]
    function.restype = ctypes.c_int
    call: _SwapFunction = function
    return call
