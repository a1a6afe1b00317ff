"""Kills of a process at a chosen statement or commit of its database."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from tempfile import TemporaryFile

from sqlalchemy import Engine, event

from tests.support.fork_server import ForkedProcess

TIMEOUT = 300  # seconds
MAX_STEPS = 2000  # more steps mean an endless loop


def run_fault_module(module: str, *arguments: str, imports: Sequence[str] = ()) -> int:
    """Run a module in a process without threads and return the last number that it prints."""
    with TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
        process = ForkedProcess(
            module, *arguments, imports=[module, *imports], stdout=output, stderr=errors
        )
        with closing(process):
            code = process.wait(TIMEOUT)
        output.seek(0)
        errors.seek(0)
        assert code == 0, errors.read()
        return int(output.read().split()[-1])


def run_until_killed(step: int, work: Callable[[], None]) -> bool:
    """Run `work` in a forked child that is killed at a step; return whether it completed.

    A step is the moment before a statement, which is also the one after the previous statement, or
    before a commit.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _kill_at(step)
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - a forked child must not return to the parent's code
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return status == 0


def _kill_at(step: int) -> None:
    executed = 0

    def count(*_: object) -> None:
        nonlocal executed
        executed += 1
        if executed == step:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in ("before_cursor_execute", "commit"):
        event.listen(Engine, name, count)
