"""Git processes: isolated from user configuration, with limits. Started only here.

Git does not inherit the caller's environment, except one variable that Windows needs, and except in
`ask_credential_helpers`. Each run has its own session, so that processes started by git can be
killed with it.
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

from skillhall._internal.settings import read_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# `http.curloptResolve` needs 2.37; 2.39 is the oldest version that we test.
MIN_GIT_VERSION = (2, 39)
_POLL_INTERVAL = 0.1  # seconds between checks of the limits
_HELPER_TIMEOUT = 20.0  # seconds; some helpers ask a server
_SHUTDOWN_TIMEOUT = 5.0  # seconds until the streams of a killed process are closed
_CHUNK = 64 * 1024  # bytes
_MAX_STDERR = 16 * 1024  # bytes at the end of git's error output
_MAX_STDOUT = 64 * 1024 * 1024  # bytes; the paths of a repository with half a million files
_VERSION = re.compile(rb"git version (\d+)\.(\d+)")
_PROGRESS = re.compile(r"(?:remote: )?([A-Z][A-Za-z -]{2,40}): +(?:\d+% \((\d+)/(\d+)\)|(\d+))")
_NO_HOME = "/nonexistent"

GitProgress: TypeAlias = "Callable[[str, int, int], None]"  # step, completed, total

# Most of these disable a feature that a repository, a host or a user's configuration could exploit.
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
    # Git would send the header with the token to the target of a redirect.
    "http.followRedirects=false",
    "http.proxy=",
    "http.lowSpeedLimit=1",  # bytes a second
    "http.lowSpeedTime=30",  # seconds; also ends a git whose parent process was killed
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.bareRepository=explicit",
)
_NO_PROMPTS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",  # empty: never prompt, not even through another program
    "SSH_ASKPASS": "",
    "GCM_INTERACTIVE": "never",  # Git Credential Manager
}
_ENVIRONMENT = {
    "HOME": _NO_HOME,
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    **_NO_PROMPTS,
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_SSH_COMMAND": "false",
    "GIT_SSH_VARIANT": "ssh",
}


class GitTimedOut(Exception):
    """Git was killed because its deadline passed."""


class GitLimitExceeded(Exception):
    """Git was killed because its output or its repository exceeded a size limit."""


class GitNotAvailable(Exception):
    """Git is not installed, or too old to pin its connections to an IP address."""


class GitResult(NamedTuple):
    """Exit code, output, and the end of the error output."""

    exit_code: int
    stdout: bytes
    stderr: str


@dataclass(frozen=True, slots=True)
class GitRunLimits:
    """Limits on the time and output of a run."""

    deadline: float  # on the monotonic clock
    max_stdout: int = _MAX_STDOUT  # bytes
    measured_folder: str = ""  # the folder that `max_folder_size` applies to, if any
    max_folder_size: int = 0  # bytes


@dataclass(frozen=True, slots=True)
class GitRunOptions:
    """Options of a run, besides its arguments; the environment may contain secrets."""

    configuration: Sequence[str] = ()
    environment: Mapping[str, str] | None = None
    stdin: bytes | None = None
    progress: GitProgress | None = None
    # A locked descriptor. Git inherits it, so that it stays locked until git exits.
    lock: int | None = None


def is_git_available() -> bool:
    """Whether a supported version of git is installed."""
    program = shutil.which("git")
    return program is not None and _read_git_version(program) >= MIN_GIT_VERSION


def read_git_version() -> str | None:
    """Return the version of git, such as "2.43"; `None` if it is not installed."""
    program = shutil.which("git")
    version = (0, 0) if program is None else _read_git_version(program)
    return ".".join(map(str, version)) if any(version) else None


@cache
def _read_git_version(program: str) -> tuple[int, int]:
    try:
        result = subprocess.run(  # noqa: S603 - git, found on PATH
            [program, "version"],
            env=_build_environment(program, {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0, 0
    match = _VERSION.match(result.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def run_git(
    repository: str,
    arguments: Sequence[str],
    limits: GitRunLimits,
    options: GitRunOptions = GitRunOptions(),  # noqa: B008 - frozen
) -> GitResult:
    """Run git on the repository at a path and wait until it exits.

    Raises: GitTimedOut, GitLimitExceeded, GitNotAvailable.
    """
    program = shutil.which("git")
    if program is None or not is_git_available():
        raise GitNotAvailable
    configuration = [
        word for pair in (*_CONFIGURATION, *options.configuration) for word in ("-c", pair)
    ]
    command = [program, f"--git-dir={repository}", "--no-pager", *configuration, *arguments]
    environment = _build_environment(program, options.environment or {})
    return _run(command, environment, limits, options)


def ask_credential_helpers(request: bytes) -> bytes:
    """Return what the user's credential helpers know about a host; empty if they know nothing.

    This is the only use of the user's configuration and environment, which the helpers need. The
    working directory is outside of any repository, so none can add a helper.
    """
    program = shutil.which("git")
    if program is None:
        return b""
    environment = {**read_environment(), **_NO_PROMPTS}
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"):
        environment.pop(name, None)
    limits = GitRunLimits(time.monotonic() + _HELPER_TIMEOUT, max_stdout=_MAX_STDERR)
    options = GitRunOptions(stdin=request)
    try:
        result = _run([program, "credential", "fill"], environment, limits, options)
    except (GitTimedOut, GitLimitExceeded, GitNotAvailable):
        return b""
    return b"" if result.exit_code else result.stdout


def _run(
    command: list[str], environment: dict[str, str], limits: GitRunLimits, options: GitRunOptions
) -> GitResult:
    with _open_stdin(options.stdin) as stdin:
        process = _start(command, environment, stdin, options.lock)
        try:
            return _ProcessMonitor(process, limits, options.progress).run_to_end()
        finally:
            _kill_process_group(process)


def _build_environment(program: str, extra: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join((os.path.dirname(program), os.defpath))
    # Windows cannot open sockets without this variable.
    system = {"SYSTEMROOT": os.environ["SYSTEMROOT"]} if sys.platform == "win32" else {}
    return {**_ENVIRONMENT, "PATH": path, **system, **extra}


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
        return subprocess.Popen(  # noqa: S603 - no shell; untrusted arguments were checked
            command,
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=os.path.dirname(command[0]),  # a folder outside of any repository
            start_new_session=True,
            pass_fds=inherited,
        )
    except OSError:
        raise GitNotAvailable from None


def _kill_process_group(process: subprocess.Popen[bytes]) -> None:
    """Kill git and all processes that it started."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# Whether it is from stdout (else stderr), and the bytes: none at the end of the stream.
_OutputChunk: TypeAlias = tuple[bool, bytes]


class _ProcessMonitor:
    """Reads both streams of a process and enforces its limits."""

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
        self._partial_line = b""

    def run_to_end(self) -> GitResult:
        """Wait until the process exits. Raises: GitTimedOut, GitLimitExceeded."""
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
                while chunk := os.read(stream.fileno(), _CHUNK):
                    self._chunks.put((is_out, chunk))
            self._chunks.put((is_out, b""))

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def _consume_output(self, open_streams: int) -> None:
        next_check = time.monotonic()
        while open_streams:
            with contextlib.suppress(queue.Empty):
                is_out, chunk = self._chunks.get(timeout=_POLL_INTERVAL)
                open_streams -= not chunk
                self._handle_chunk(chunk, is_out=is_out)
            if time.monotonic() >= next_check:
                if time.monotonic() > self._limits.deadline:
                    raise GitTimedOut
                self._check_folder_size()
                next_check = time.monotonic() + _POLL_INTERVAL

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
        """Report git's progress messages."""
        if self._progress is None:
            return
        *lines, self._partial_line = re.split(
            rb"[\r\n]", (self._partial_line + chunk)[-_MAX_STDERR:]
        )
        for line in lines:
            if match := _PROGRESS.match(line[:200].decode(errors="replace")):
                step, completed, total, count = match.groups()
                self._progress(step, int(completed or count), int(total or 0))

    def _check_folder_size(self) -> None:
        folder = self._limits.measured_folder
        if folder and measure_folder(folder) > self._limits.max_folder_size:
            raise GitLimitExceeded


def measure_folder(folder: str) -> int:
    """Return the total size of a folder's files in bytes."""
    size = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):  # git removes temporary files while it runs
                size += os.lstat(os.path.join(parent, name)).st_size
    return size
