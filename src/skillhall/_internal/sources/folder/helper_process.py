"""A forked copy of this process that computes one answer: a second core for one large scan."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 1 << 20
_DONE = b"\0the helper is done\0"


def may_fork() -> bool:
    """Whether a fork is safe here and has a core to run on."""
    if not hasattr(os, "fork") or sys.platform == "darwin" or _cores() == 1:
        return False
    # A fork copies only the thread that calls it; locks that others hold would never open again.
    threading = sys.modules.get("threading")
    return threading is None or threading.active_count() == 1


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class HelperProcess:
    """One running helper; `result` must be called exactly once."""

    def __init__(self, work: Callable[[], bytes]) -> None:
        """Start it. Raises: OSError where no process can be started."""
        self._reading, writing = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._reading)
            os.close(writing)
            raise
        if self._pid == 0:
            os.close(self._reading)
            _answer(work, writing)
        os.close(writing)

    def result(self) -> bytes | None:
        """What the helper computed, or `None` if it failed."""
        chunks = []
        with suppress(OSError):
            while chunk := os.read(self._reading, _CHUNK):
                chunks.append(chunk)
        os.close(self._reading)
        # Where children are ignored, there is none to wait for; the last word tells all the same.
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        answer = b"".join(chunks)
        return answer[: -len(_DONE)] if answer.endswith(_DONE) else None


def _answer(work: Callable[[], bytes], writing: int) -> None:
    """Runs in the helper and never returns: nothing of the parent's clean-up may run twice."""
    try:
        data = memoryview(work() + _DONE)
        while data:
            data = data[os.write(writing, data[:_CHUNK]) :]
    finally:
        os._exit(0)
