"""Processes forked from one that has already imported their modules.

Importing our modules takes longer than most of these processes run. The process that forks them has
no threads, connections or open files of a test, and each fork gets the variables, the folder and
the streams of its own, so that it behaves like `python -m MODULE`.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
_MAX_MESSAGE = 1 << 20  # bytes
_KILL_TIMEOUT = 120  # seconds
_STREAMS = 4  # stdin, stdout, stderr, and the pipe for the process id and the exit code


class ForkedProcess:
    """Running process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(  # noqa: PLR0913 - like `subprocess.Popen`
        self,
        module: str,
        *arguments: str,
        imports: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        stdin: IO[Any] | None = None,
        stdout: IO[Any] | None = None,
        stderr: IO[Any] | None = None,
    ) -> None:
        """Run a module like `python -m`, in a fork of a process that has imported `imports`.

        Without files, stdin is empty, stdout is a pipe, and stderr is inherited.
        """
        request = {
            "module": module,
            "arguments": arguments,
            "imports": imports,
            "env": dict(os.environ if env is None else env),
            "cwd": str(cwd),
        }
        self.args = [module, *arguments]
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None
        results, result_writer = os.pipe()
        self._results = os.fdopen(results, encoding="ascii")
        closed = [result_writer]
        if stdout is None:
            reader, writer = os.pipe()
            self.stdout = os.fdopen(reader, encoding="utf-8")
            closed.append(writer)
        output = writer if stdout is None else stdout.fileno()
        error = 2 if stderr is None else stderr.fileno()
        with Path(os.devnull).open("rb") as null:
            read = null if stdin is None else stdin
            streams = [read.fileno(), output, error, result_writer]
            message = json.dumps(request).encode() + b"\n"
            socket.send_fds(_connect(), [message], streams)
        for descriptor in closed:
            os.close(descriptor)
        pid = self._results.readline()
        assert pid, f"{module} cannot be started"
        self.pid = int(pid)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, unless it has ended."""
        with suppress(ProcessLookupError):
            if not self._is_readable(0):
                os.kill(self.pid, number)

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self.wait(0) if self._is_readable(0) else None

    def read_output(self, timeout: float) -> str:
        """Read stdout up to its end; kill the process after `timeout` seconds."""
        assert self.stdout is not None
        watchdog = threading.Timer(timeout, self.send_signal, [signal.SIGKILL])
        watchdog.start()
        try:
            return self.stdout.read()
        finally:
            watchdog.cancel()
            watchdog.join()

    def wait(self, timeout: float) -> int:
        """Wait for the process and return its exit code, as `subprocess.Popen` does."""
        if self.returncode is None:
            if not self._is_readable(timeout):
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = int(self._results.readline())
            self._results.close()
        return self.returncode

    def close(self) -> None:
        """Kill the process if it runs, and close its output."""
        self.send_signal(signal.SIGKILL)
        self.wait(_KILL_TIMEOUT)
        if self.stdout is not None:
            self.stdout.close()

    def _is_readable(self, timeout: float) -> bool:
        if self.returncode is not None:
            return True
        return bool(select.select([self._results], [], [], timeout)[0])


@cache
def _connect() -> socket.socket:
    """Return the socket of the process that forks, which is started and ends with this one."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())]
    variables = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    server = subprocess.Popen(command, cwd=ROOT, env=variables, pass_fds=[theirs.fileno()])
    theirs.close()

    def stop() -> None:
        ours.close()
        server.wait()

    atexit.register(stop)
    return ours


def _serve(connection: socket.socket) -> None:
    """Fork a process for each request; return in that process, after it has been set up."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no parent waits for the forks below
    while True:
        message, streams, _, _ = socket.recv_fds(connection, _MAX_MESSAGE, _STREAMS)
        while message and not message.endswith(b"\n"):
            message += connection.recv(_MAX_MESSAGE)
        if not message:
            sys.exit()
        request = json.loads(message)
        for name in request["imports"]:
            importlib.import_module(name)
        gc.freeze()  # a collection in a fork would copy the memory of all objects
        if os.fork() == 0:
            connection.close()
            if _fork_and_wait(streams.pop()):
                _become(request, streams)
                return
        for descriptor in streams:
            os.close(descriptor)


def _fork_and_wait(results: int) -> bool:
    """Return true in a new process; in this one, report its id and its exit code, and exit."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(results)
        return True
    # Its readers wait until no process has the streams.
    os.closerange(0, results)
    os.closerange(results + 1, results + 2 + _STREAMS)
    os.write(results, b"%d\n" % pid)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(results, b"%d\n" % status)
    os._exit(0)


def _become(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Take the variables, the folder, the arguments and the streams of a request."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # The objects depend on the kind of their file.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = [request["module"], *request["arguments"]]
    sys.modules.pop(request["module"], None)  # it is run as `__main__`


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
