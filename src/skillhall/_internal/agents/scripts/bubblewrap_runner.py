"""Script runner on bubblewrap, the reference implementation of the protocol."""

from __future__ import annotations

import json
import shutil
import sys
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.scripts.bounded_process import (
    ProcessOptions,
    run_process_in_thread,
)
from skillhall._internal.agents.scripts.script_runner import ScriptLimits
from skillhall._internal.agents.scripts.script_sandbox import (
    SANDBOX_ENTRY,
    build_clean_environment,
    find_interpreter,
    list_program_folders,
    list_resource_limits,
)
from skillhall.errors import SandboxUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from skillhall._internal.agents.scripts.script_runner import ProcessResult, ScriptCall

_PROGRAM = "bwrap"
# Only these parts of /etc: the rest may have secrets, and the caller may be root.
_READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"),
)
_SKILL, _WORK = "/skill", "/work"
_FOLDER_SIZE = 64 * 1024**2  # bytes of each temporary folder in memory


class BubblewrapRunner:
    """Runs scripts with [bubblewrap](https://github.com/containers/bubblewrap), on Linux.

    A script has no network, sees no other processes and none of the caller's variables, and reads
    only system folders and its skill. It starts in `/work`: a temporary folder or, with
    `work_folder`, that folder, the only one whose changes remain. `limits` replace the default
    ones.

    Raises: SandboxUnavailable if `bwrap` is missing or may not create namespaces.

    ```python
    from skillhall import AgentSkills
    from skillhall.errors import SandboxUnavailable
    from skillhall.scripts import BubblewrapRunner

    try:
        skills = AgentSkills.of("skills", script_runner=BubblewrapRunner())
    except SandboxUnavailable as error:
        print(error)
    ```
    """

    def __init__(
        self,
        *,
        work_folder: str | PathLike[str] | None = None,
        limits: ScriptLimits | None = None,
    ) -> None:
        self._limits = limits
        self._work_folder = (
            None if work_folder is None else str(Path(fspath(work_folder)).absolute())
        )
        program = shutil.which(_PROGRAM) if sys.platform.startswith("linux") else None
        if program is None:
            raise SandboxUnavailable(_PROGRAM, "it is not installed, or this system is not Linux")
        self._program = program
        # Before a model depends on it: many systems forbid namespaces to users or in containers.
        probe = self._run("/usr", ("/bin/sh",), ("-c", ":"), ScriptLimits())
        if probe.exit_code:
            problem = probe.stderr.decode("utf-8", "replace").strip() or probe.limit
            raise SandboxUnavailable(_PROGRAM, problem.removeprefix(f"{_PROGRAM}: "))

    def run(self, call: ScriptCall) -> ProcessResult:
        """Run the script and wait for it. Raises: OSError if its interpreter is not installed."""
        arguments = (f"{_SKILL}/{call.path}", *call.arguments)
        limits = self._limits or call.limits
        return self._run(str(call.folder), find_interpreter(call.path), arguments, limits)

    def _run(
        self,
        skill: str,
        interpreter: Sequence[str],
        arguments: Sequence[str],
        limits: ScriptLimits,
    ) -> ProcessResult:
        rules = {
            "network": False,  # bubblewrap restricts both
            "files": False,
            "limits": list_resource_limits(limits.seconds, limits.memory, limits.output),
        }
        options = ProcessOptions(
            folder="/",
            environment=build_clean_environment("/tmp"),  # noqa: S108 - inside the sandbox
            timeout=limits.seconds,
            max_output=limits.output,
        )
        entry = (sys.executable, "-I", "-S", str(SANDBOX_ENTRY), json.dumps(rules))
        sandbox = (self._program, *self._list_options(skill, interpreter), "--")
        return run_process_in_thread((*entry, *sandbox, *interpreter, *arguments), options)

    def _list_options(self, skill: str, interpreter: Sequence[str]) -> list[str]:
        """Return the options of bubblewrap, which applies them in order."""
        options = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        options += ["--proc", "/proc", "--dev", "/dev", *_mount_memory("/dev/shm", "/tmp")]  # noqa: S108
        programs = (path for one in interpreter for path in list_program_folders(one))
        for path in (*_READABLE, *programs):
            options += ["--ro-bind-try", path, path]
        options += ["--ro-bind", skill, _SKILL]
        if self._work_folder is None:
            options += _mount_memory(_WORK)
        else:
            options += ["--bind", self._work_folder, _WORK]
        # Their file systems are in memory, without a limit.
        return [*options, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", _WORK]


def _mount_memory(*folders: str) -> list[str]:
    return [
        option for folder in folders for option in ("--size", str(_FOLDER_SIZE), "--tmpfs", folder)
    ]
