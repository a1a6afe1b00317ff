"""Fault injection at every step of an operation: killed process or full disk.

`python -m tests.support.fault_injection MODULE CASE KIND` forks a child for each step. The child
runs the operation and is killed or fails at that step; then the result is checked. CASE is the name
of a `FaultCase` in MODULE.
"""

import builtins
import errno
import os
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from tests.support.statement_faults import run_fault_module

COMPLETED = "completed"
_KILLED = 9
_MAX_STEPS = 2000  # more steps mean an endless loop
# Calls that change the disk. `open` is patched separately; writes go through it.
_COUNTED_CALLS = (
    "mkdir",
    "replace",
    "rename",
    "unlink",
    "rmdir",
    "fsync",
    "fchmod",
    "symlink",
    "link",
    "utime",
)


class FaultCase(Protocol):
    """Operation in a folder of its own."""

    def prepare(self, folder: Path) -> None: ...

    def run(self, folder: Path) -> None: ...

    def check(self, folder: Path) -> None: ...


def run_faults(module: str, case: str, kind: str) -> int:
    """Inject a fault at every step and return the number of steps."""
    arguments = ("tests.support.fault_injection", module, case, kind)
    return run_fault_module(*arguments, imports=[module])


def _main(module: str, name: str, kind: str) -> None:
    case: FaultCase = getattr(import_module(module), name)()
    fault = {"kill": _kill_process, "full": _raise_disk_full}[kind]
    with TemporaryDirectory() as parent:
        folder, prepared = Path(parent) / "here", Path(parent) / "prepared"
        folder.mkdir()
        case.prepare(folder)
        folder.rename(prepared)
        for step in range(1, _MAX_STEPS):
            shutil.copytree(prepared, folder, symlinks=True)
            is_completed = _run_with_fault(case, folder, step, fault)
            case.check(folder)
            shutil.rmtree(folder)
            if is_completed:
                sys.stdout.write(f"{COMPLETED} after {step - 1}\n")
                return
    raise AssertionError(f"more than {_MAX_STEPS} steps")


def _run_with_fault(case: FaultCase, folder: Path, step: int, fault: Callable[[], None]) -> bool:
    """Return whether the operation completed before the faulty step."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            counter = _CallCounter(step, fault)
            counter.install()
            try:
                case.run(folder)
            except OSError as error:
                code = _KILLED if error.errno == errno.ENOSPC and counter.call_count >= step else 1
                if code == 1:
                    sys.excepthook(*sys.exc_info())
            else:
                code = 0 if counter.call_count < step else _KILLED
        except BaseException:  # noqa: BLE001 - a forked child must not return to the parent's code
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, _KILLED), f"step {step} ended with {status}"
    return status == 0


class _CallCounter:
    """Counts the calls that change the disk, and makes one of them fail."""

    def __init__(self, step: int, fault: Callable[[], None]) -> None:
        self.call_count = 0
        self._step = step
        self._fault = fault

    def install(self) -> None:
        for name in _COUNTED_CALLS:
            setattr(os, name, self._count_calls(getattr(os, name)))
        real_open = os.open
        os.open = lambda path, flags, *rest, **more: (
            self._count_call(real_open)(path, flags, *rest, **more)
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            else real_open(path, flags, *rest, **more)
        )
        builtins.open = self._count_calls(builtins.open)

    def _count_calls(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passed on unchanged
            return self._count_call(function)(*args, **kwargs)

        return call

    def _count_call(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self.call_count += 1
        if self.call_count == self._step:
            self._fault()
        return function


def _kill_process() -> None:
    os._exit(_KILLED)


def _raise_disk_full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


if __name__ == "__main__":
    _main(*sys.argv[1:])
