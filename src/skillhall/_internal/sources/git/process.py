"""The git program: the one place that starts it, bare of everybody's configuration, and bounded.

Nothing of the caller's environment reaches git but where its programs are. Each run has a session
of its own, so that what git itself starts ends with it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

MIN_GIT_VERSION = (
    2,
    39,
)  # `http.curloptResolve` is of 2.37, and 2.39 is the oldest that we test with
_POLL_INTERVAL = 0.1  # seconds between looks at the clock and the disk
_SHUTDOWN_TIMEOUT = 5.0  # seconds until the streams of a process that was ended are at their end
_CHUNK = 64 * 1024  # bytes
_MAX_STDERR = 16 * 1024  # bytes of what git says that are kept: its end
_MAX_STDOUT = 64 * 1024 * 1024  # bytes; the paths of a repository with half a million files
_VERSION = re.compile(rb"git version (\d+)\.(\d+)")
_PROGRESS = re.compile(r"(?:remote: )?([A-Z][A-Za-z -]{2,40}): +(?:\d+% \((\d+)/(\d+)\)|(\d+))")
_NO_HOME = "/nonexistent"

GitProgress: TypeAlias = "Callable[[str, int, int], None]"  # what is done, how much, of how much

# Each refuses something that a repository, a host or a person's own configuration could ask for.
_CONFIGURATION = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "core.askPass=",
    "credential.helper=",
    "protocol.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.unpackLimit=1",  # one pack per fetch, never thousands of files
    "transfer.fsckObjects=true",
    "transfer.bundleURI=false",
    # A header with a token would follow a redirect to any host.
    "http.followRedirects=false",
    "http.proxy=",
    "http.lowSpeedLimit=1",  # bytes a second
    "http.lowSpeedTime=30",  # seconds; also ends a git whose starter was killed
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.bareRepository=explicit",
)
_ENVIRONMENT = {
    "HOME": _NO_HOME,
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",  # empty: nobody is asked, not even by another program
    "SSH_ASKPASS": "",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_SSH_COMMAND": "false",
    "GIT_SSH_VARIANT": "ssh",
}


class GitTimedOut(Exception):
    """A run that was ended because its time was over."""


class GitLimitExceeded(Exception):
    """A run that was ended because it wrote too much."""


class GitNotAvailable(Exception):
    """There is no git here, or one that is too old to be told which address to call."""


class GitResult(NamedTuple):
    """How a run ended, what it printed, and the end of what it said."""

    exit_code: int
    stdout: bytes
    stderr: str


@dataclass(frozen=True, slots=True)
class GitRunLimits:
    """How long a run may take, and how much it may write."""

    deadline: float  # on the monotonic clock
    max_stdout: int = _MAX_STDOUT  # bytes on standard output
    measured_folder: str = ""  # whose files are counted
    max_folder_size: int = 0  # bytes that they may have


@dataclass(frozen=True, slots=True)
class GitRunOptions:
    """What one run has besides its arguments; the environment may hold secrets."""

    configuration: Sequence[str] = ()
    environment: Mapping[str, str] | None = None
    stdin: bytes | None = None  # on standard input
    progress: GitProgress | None = None
    lock: int | None = None  # a locked descriptor: it stays locked until git has ended, too


def is_git_available() -> bool:
    """Whether there is a git that is new enough."""
    program = shutil.which("git")
    return program is not None and _read_git_version(program) >= MIN_GIT_VERSION


@cache
def _read_git_version(program: str) -> tuple[int, int]:
    try:
        done = subprocess.run(  # noqa: S603 - git, found on PATH
            [program, "version"],
            env=_build_environment(program, {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0, 0
    found = _VERSION.match(done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def run_git(
    repository: str,
    arguments: Sequence[str],
    limits: GitRunLimits,
    options: GitRunOptions = GitRunOptions(),  # noqa: B008 - frozen
) -> GitResult:
    """Run git on a repository, named by its path and by nothing else, to its end.

    Raises: OutOfTime, OutOfBounds, NoGit.
    """
    program = shutil.which("git")
    if program is None or not is_git_available():
        raise GitNotAvailable
    configuration = [
        word for pair in (*_CONFIGURATION, *options.configuration) for word in ("-c", pair)
    ]
    command = [program, f"--git-dir={repository}", "--no-pager", *configuration, *arguments]
    with _open_stdin(options.stdin) as given:
        environment = _build_environment(program, options.environment or {})
        process = _start(command, environment, given, options.lock)
        try:
            return _ProcessMonitor(process, limits, options.progress).run_to_end()
        finally:
            _kill_process_group(process)


def _build_environment(program: str, extra: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join((os.path.dirname(program), os.defpath))
    return {**_ENVIRONMENT, "PATH": path, **_system_variables(), **extra}


def _system_variables() -> dict[str, str]:
    # Windows opens no socket without it.
    return {"SYSTEMROOT": os.environ["SYSTEMROOT"]} if sys.platform == "win32" else {}


@contextlib.contextmanager
def _open_stdin(data: bytes | None) -> Iterator[IO[bytes] | int]:
    if data is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def _start(
    command: list[str], environment: dict[str, str], stdin: IO[bytes] | int, lock: int | None
) -> subprocess.Popen[bytes]:
    inherited = () if lock is None or sys.platform == "win32" else (lock,)
    try:
        return subprocess.Popen(  # noqa: S603 - no shell; what comes from outside was checked
            command,
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=os.path.dirname(command[0]),  # a folder that is no repository of anyone's
            start_new_session=True,
            pass_fds=inherited,
        )
    except OSError:
        raise GitNotAvailable from None


def _kill_process_group(process: subprocess.Popen[bytes]) -> None:
    """Make sure that neither git nor anything that it started is left."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


_OutputChunk: TypeAlias = tuple[bool, bytes]  # whether it is standard output; empty at the end


class _ProcessMonitor:
    """Reads both streams of a process while it keeps to its bounds."""

    def __init__(
        self, process: subprocess.Popen[bytes], limits: GitRunLimits, progress: GitProgress | None
    ) -> None:
        self._process = process
        self._limits = limits
        self._progress = progress
        self._chunks: queue.SimpleQueue[_OutputChunk] = queue.SimpleQueue()
        self._stdout: list[bytes] = []
        self._stdout_size = 0
        self._stderr_tail = b""
        self._partial_line = b""  # of a line that has not ended

    def run_to_end(self) -> GitResult:
        """The end of the run. Raises: OutOfTime, OutOfBounds."""
        streams = (self._process.stdout, True), (self._process.stderr, False)
        readers = [
            self._start_reader(stream, is_out=is_out) for stream, is_out in streams if stream
        ]
        try:
            self._consume_output(len(readers))
            self._process.wait(max(self._limits.deadline - time.monotonic(), _POLL_INTERVAL))
        except subprocess.TimeoutExpired:
            raise GitTimedOut from None
        finally:
            _kill_process_group(self._process)
            for reader in readers:
                reader.join(_SHUTDOWN_TIMEOUT)
        self._check_folder_size()
        return GitResult(
            self._process.returncode,
            b"".join(self._stdout),
            self._stderr_tail.decode(errors="replace"),
        )

    def _start_reader(self, stream: IO[bytes], *, is_out: bool) -> threading.Thread:
        def read() -> None:
            with stream:
                while piece := os.read(stream.fileno(), _CHUNK):
                    self._chunks.put((is_out, piece))
            self._chunks.put((is_out, b""))

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def _consume_output(self, open_streams: int) -> None:
        look = time.monotonic()
        while open_streams:
            with contextlib.suppress(queue.Empty):
                is_out, piece = self._chunks.get(timeout=_POLL_INTERVAL)
                open_streams -= not piece
                self._handle_chunk(piece, is_out=is_out)
            if time.monotonic() >= look:
                self._check_limits()
                look = time.monotonic() + _POLL_INTERVAL

    def _handle_chunk(self, chunk: bytes, *, is_out: bool) -> None:
        if not is_out:
            self._stderr_tail = (self._stderr_tail + chunk)[-_MAX_STDERR:]
            self._report_progress(chunk)
            return
        self._stdout_size += len(chunk)
        if self._stdout_size > self._limits.max_stdout:
            raise GitLimitExceeded
        self._stdout.append(chunk)

    def _report_progress(self, chunk: bytes) -> None:
        """Pass on how far git says that it is."""
        if self._progress is None:
            return
        *lines, self._partial_line = re.split(
            rb"[\r\n]", (self._partial_line + chunk)[-_MAX_STDERR:]
        )
        for line in lines:
            if found := _PROGRESS.match(line[:200].decode(errors="replace")):
                what, done, total, count = found.groups()
                self._progress(what, int(done or count), int(total or 0))

    def _check_limits(self) -> None:
        if time.monotonic() > self._limits.deadline:
            raise GitTimedOut
        self._check_folder_size()

    def _check_folder_size(self) -> None:
        bounds = self._limits
        if (
            bounds.measured_folder
            and measure_folder(bounds.measured_folder) > bounds.max_folder_size
        ):
            raise GitLimitExceeded


def measure_folder(folder: str) -> int:
    """The bytes of the files in a folder and below it."""
    size = 0
    for above, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):  # git removes files as it goes
                size += os.lstat(os.path.join(above, name)).st_size
    return size
