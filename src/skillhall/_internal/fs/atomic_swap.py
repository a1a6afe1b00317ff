"""Two names in a folder, exchanged in one step, where the system has a call for it."""

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
# The kernel or the file system cannot do it; nothing has happened.
_UNSUPPORTED_ERRNOS = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV, errno.EPERM}


def swap_names(folder: int, first: str, second: str) -> bool:
    """Let both names change places; False, and nothing done, if the system cannot.

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
    found = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if found is None:
        return None
    found.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    ]
    found.restype = ctypes.c_int
    call: _SwapFunction = found
    return call
