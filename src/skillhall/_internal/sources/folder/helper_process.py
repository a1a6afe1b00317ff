"""Helper process: a fork that computes one result on a second core."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 1 << 20
_END_MARKER = b"\0the helper is done\0"  # without it, the result is incomplete


def can_fork() -> bool:
    """Whether a fork is safe and a second core is available."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    # On macOS, system libraries may have started threads, so a fork is not safe.
    if not hasattr(os, "fork") or sys.platform == "darwin" or cores == 1:
        return False
    # A fork copies only the calling thread; locks held by other threads would never be released.
    threading = sys.modules.get("threading")
    return threading is None or threading.active_count() == 1


class HelperProcess:
    """Running helper process; `result` must be called exactly once."""

    def __init__(self, work: Callable[[], bytes]) -> None:
        """Fork and start `work`. Raises: OSError."""
        self._read_end, write_end = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._read_end)
            os.close(write_end)
            raise
        if self._pid == 0:
            try:
                os.close(self._read_end)
                data = memoryview(work() + _END_MARKER)
                while data:
                    data = data[os.write(write_end, data[:_CHUNK]) :]
            finally:
                os._exit(0)  # skips the clean-up handlers copied from the parent
        os.close(write_end)

    def result(self) -> bytes | None:
        """Return the result of the helper, or `None` if it failed."""
        chunks = []
        with suppress(OSError):
            while chunk := os.read(self._read_end, _CHUNK):
                chunks.append(chunk)
        os.close(self._read_end)
        # If SIGCHLD is ignored, there is no child to wait for; the end marker is sufficient.
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        data = b"".join(chunks)
        return data[: -len(_END_MARKER)] if data.endswith(_END_MARKER) else None
