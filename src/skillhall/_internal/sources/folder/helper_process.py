"""A forked copy of this process that computes one answer: a second core for one large scan."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 1 << 20
_END_MARKER = b"\0the helper is done\0"


def can_fork() -> bool:
    """Whether a fork is safe here and has a core to run on."""
    if not hasattr(os, "fork") or sys.platform == "darwin" or _count_cores() == 1:
        return False
    # A fork copies only the thread that calls it; locks that others hold would never open again.
    threading = sys.modules.get("threading")
    return threading is None or threading.active_count() == 1


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class HelperProcess:
    """One running helper; `result` must be called exactly once."""

    def __init__(self, work: Callable[[], bytes]) -> None:
        """Start it. Raises: OSError where no process can be started."""
        self._read_end, writing = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._read_end)
            os.close(writing)
            raise
        if self._pid == 0:
            os.close(self._read_end)
            _run_and_exit(work, writing)
        os.close(writing)

    def result(self) -> bytes | None:
        """What the helper computed, or `None` if it failed."""
        chunks = []
        with suppress(OSError):
            while chunk := os.read(self._read_end, _CHUNK):
                chunks.append(chunk)
        os.close(self._read_end)
        # Where children are ignored, there is none to wait for; the last word tells all the same.
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        answer = b"".join(chunks)
        return answer[: -len(_END_MARKER)] if answer.endswith(_END_MARKER) else None


def _run_and_exit(work: Callable[[], bytes], write_end: int) -> None:
    """Runs in the helper and never returns: nothing of the parent's clean-up may run twice."""
    try:
        data = memoryview(work() + _END_MARKER)
        while data:
            data = data[os.write(write_end, data[:_CHUNK]) :]
    finally:
        os._exit(0)
