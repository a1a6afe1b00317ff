"""Runs a process with limits of time and output.

It ends the process together with all processes in its group.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from skillhall._internal.agents.scripts.script_runner import ProcessResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_STREAM_TIMEOUT = 2.0  # seconds to wait for the streams of an ended process


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """Where a process runs, and its limits. It inherits nothing else from this one."""

    folder: str
    environment: Mapping[str, str]
    timeout: float  # seconds
    max_output: int  # bytes of each stream
    stdin: bytes = b""


async def run_process(command: Sequence[str], options: ProcessOptions) -> ProcessResult:
    """Run a command without a shell and wait for it. Raises: OSError if it cannot be started."""
    transport, output = await asyncio.get_running_loop().subprocess_exec(
        lambda: _OutputCollector(options.max_output),
        *command,
        cwd=options.folder,
        env=dict(options.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    limit = ""
    try:
        stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        stdin.write(options.stdin)
        stdin.close()  # closes the pipe once the data is written
        async with asyncio.timeout(options.timeout):
            await output.ended.wait()
        if output.is_full:
            limit = f"the limit of {options.max_output} bytes of output was reached"
    except TimeoutError:
        limit = f"the limit of {options.timeout:g} seconds was reached"
    finally:
        _kill_group(transport)
        # Processes outside of the group may keep the streams open.
        with suppress(TimeoutError):
            async with asyncio.timeout(_STREAM_TIMEOUT):
                await output.exited.wait()
                await output.closed.wait()
        exit_code = transport.get_returncode()
        transport.close()
    return ProcessResult(
        exit_code=-1 if exit_code is None else exit_code,
        stdout=bytes(output.streams[1]),
        stderr=bytes(output.streams[2]),
        limit=limit,
    )


def run_process_in_thread(command: Sequence[str], options: ProcessOptions) -> ProcessResult:
    """Like `run_process`, for callers whose own thread may run an event loop."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, run_process(command, options)).result()


class _OutputCollector(asyncio.SubprocessProtocol):
    """Collects the output of a process up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open_streams = {1, 2}
        self.streams = {1: bytearray(), 2: bytearray()}
        self.is_full = False
        self.exited = asyncio.Event()
        self.ended = asyncio.Event()  # the process has exited, or its output is too large
        self.closed = asyncio.Event()  # both streams are closed

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Store data of stdout or stderr."""
        stream = self.streams[fd]
        stream += data[: self._limit - len(stream)]
        if len(stream) >= self._limit:
            self.is_full = True
            self.ended.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Record the end of a stream."""
        del exc
        self._open_streams.discard(fd)
        if not self._open_streams:
            self.closed.set()

    def process_exited(self) -> None:
        """Record the end of the process, whose streams may still be open."""
        self.exited.set()
        self.ended.set()


def _kill_group(transport: asyncio.SubprocessTransport) -> None:
    """Kill all processes in the group of a process."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(transport.get_pid(), signal.SIGKILL)
        elif transport.get_returncode() is None:
            transport.kill()
