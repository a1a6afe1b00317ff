"""A sandbox for the scripts of skills, for users who allowed them.

A script runs in its own process, with an empty home folder, without the caller's variables, and
with limits. On Linux it has no network, if user namespaces are available, and can read only system
folders and write only its own, if Landlock is available. On other systems it can read and write
what the user can. It is not a boundary for malware: review a script before you allow it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.agents.scripts.bounded_process import (
    ProcessOptions,
    run_process_in_thread,
)
from skillhall._internal.agents.scripts.script_runner import (
    MAX_MEMORY,
    MAX_OUTPUT,
    SCRIPT_TIMEOUT,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.agents.scripts.script_runner import ProcessResult

SANDBOX_ENTRY = Path(__file__).with_name("sandbox_entry.py")
_PROBE_TIMEOUT = 10.0  # seconds
_SYSTEM_FOLDERS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store"),
    *("/proc", "/sys/fs/cgroup", "/sys/devices/system/cpu", "/dev/random", "/dev/urandom"),
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
_INTERPRETERS = {".py": "python3", ".sh": "bash", ".js": "node", ".mjs": "node", ".rb": "ruby"}
_OPEN_FILES = 256


class SandboxSupport(NamedTuple):
    """The restrictions that this system supports."""

    network: bool  # the script has no network, and no process of it survives
    files: bool  # the script reads system folders only, and writes its own only

    def describe(self) -> str:
        """Return a sentence for the user."""
        network = "have no network" if self.network else "can use the network"
        files = "can only write their own folder" if self.files else "can read and write your files"
        return f"scripts {network} and {files}"


@cache
def probe_support() -> SandboxSupport:
    """Return the restrictions that this system supports."""
    if not sys.platform.startswith("linux"):
        return SandboxSupport(network=False, files=False)
    try:
        result = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-I", "-S", str(SANDBOX_ENTRY), "--probe"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=_PROBE_TIMEOUT,
        )
        return SandboxSupport(**json.loads(result.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        return SandboxSupport(network=False, files=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSandbox:
    """Runs scripts in a folder. The scripts and the folder must be copies for one run."""

    folder: Path  # the working directory
    home: Path
    scripts: Path  # the folder with the script; writable, like the other two
    timeout: float = SCRIPT_TIMEOUT
    max_output: int = MAX_OUTPUT  # bytes of each stream, and of each file

    def run(self, script: Path, arguments: Sequence[str] = (), stdin: bytes = b"") -> ProcessResult:
        """Run a script and wait for it.

        Raises: OSError if the script or its interpreter cannot be started.
        """
        command = (*find_interpreter(script.name), str(script), *arguments)
        return run_process_in_thread(self._wrap(command), self._build_options(stdin))

    def _build_options(self, stdin: bytes) -> ProcessOptions:
        return ProcessOptions(
            folder=str(self.folder),
            environment=build_clean_environment(self.home),
            timeout=self.timeout,
            max_output=self.max_output,
            stdin=stdin,
        )

    def _wrap(self, command: Sequence[str]) -> Sequence[str]:
        if sys.platform == "win32":
            return command
        support = probe_support()
        rules = {
            "network": support.network,
            "files": support.files,
            "readable": [*_SYSTEM_FOLDERS, *list_program_folders(command[0])],
            "writable": [*map(str, (self.folder, self.home, self.scripts)), *_DEVICES],
            "limits": list_resource_limits(self.timeout, MAX_MEMORY, self.max_output),
        }
        return (sys.executable, "-I", "-S", str(SANDBOX_ENTRY), json.dumps(rules), *command)


def list_resource_limits(seconds: float, memory: int, output: int) -> dict[str, int]:
    """Return the limits that the system applies to each process, for `sandbox_entry`."""
    return {
        "RLIMIT_CPU": max(1, round(seconds)),
        "RLIMIT_DATA": memory,
        "RLIMIT_FSIZE": output,
        "RLIMIT_NOFILE": _OPEN_FILES,
    }


def build_clean_environment(home: Path | str) -> dict[str, str]:
    """Return the variables of a process that inherits only the search path."""
    environment = {"HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8"}
    environment["PATH"] = os.environ.get("PATH") or os.defpath
    if sys.platform == "win32":
        environment |= {"USERPROFILE": str(home), "TEMP": str(home), "TMP": str(home)}
        environment["SYSTEMROOT"] = os.environ.get("SYSTEMROOT", "")
    return environment


def find_interpreter(script: str) -> tuple[str, ...]:
    """Return the interpreter of a script; none if the script itself is executable.

    Raises: OSError if the interpreter is not installed.
    """
    name = _INTERPRETERS.get(PurePath(script).suffix.lower())
    if name is None:
        return ()
    found = shutil.which(name)
    if found is None and name == "python3":
        found = sys.executable
    if found is None:
        raise FileNotFoundError(f"{name} is not installed")
    return (found,)


def list_program_folders(program: str) -> list[str]:
    """Return a program's folders that are not system folders, such as a venv.

    The home folder itself is never one of them.
    """
    home = Path.home()
    folders = []
    for path in (Path(program), Path(program).resolve()):
        prefix = path.parent.parent
        folders.append(path.parent if home.is_relative_to(prefix) else prefix)
    return [str(folder) for folder in folders if not home.is_relative_to(folder)]
