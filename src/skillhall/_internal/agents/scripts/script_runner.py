"""The protocol between the tool `run_skill_script` and the sandbox of a program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

SCRIPT_TIMEOUT = 60.0  # seconds
MAX_MEMORY = 2 * 1024**3  # bytes, of each process
MAX_OUTPUT = 1024 * 1024  # bytes of each stream, and of each file


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """The output of a process.

    >>> ProcessResult(exit_code=0, stdout=b"42 rows").stdout
    b'42 rows'
    """

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    limit: str = ""
    """The limit that ended the process, if any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptLimits:
    """The limits of one script.

    >>> ScriptLimits(seconds=5).memory
    2147483648
    """

    seconds: float = SCRIPT_TIMEOUT
    memory: int = MAX_MEMORY
    """Bytes, of each process."""
    output: int = MAX_OUTPUT
    """Bytes, of each stream and of each file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCall:
    """A call of a script that belongs to a skill.

    >>> from pathlib import Path
    >>> call = ScriptCall(skill="pdf-tools", folder=Path("copy"), path="scripts/fill.py")
    >>> call.limits.seconds
    60.0
    """

    skill: str
    """The name of the skill."""
    folder: Path
    """A private copy of the skill's files as the gate cleared them, deleted after the call."""
    path: str
    """The script: a plain relative path of a file in the folder."""
    arguments: tuple[str, ...] = ()
    limits: ScriptLimits = ScriptLimits()


class ScriptRunner(Protocol):
    """A sandbox that runs scripts of skills.

    ```python
    import subprocess

    from skillhall import AgentSkills
    from skillhall.scripts import ProcessResult, ScriptCall


    class ContainerRunner:
        def run(self, call: ScriptCall) -> ProcessResult:
            command = ["podman", "run", "--rm", "--network=none", "--read-only"]
            command += [f"--timeout={call.limits.seconds:.0f}", f"--memory={call.limits.memory}"]
            command += [f"--volume={call.folder}:/skill:ro", "python:3.13-slim"]
            command += ["python3", f"/skill/{call.path}", *call.arguments]
            done = subprocess.run(command, capture_output=True)
            return ProcessResult(
                exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr
            )


    skills = AgentSkills.of("skills", script_runner=ContainerRunner())
    ```
    """

    def run(self, call: ScriptCall) -> ProcessResult:
        """Run the script and wait for it; the tool cuts the output to the limit.

        It is called in the thread of the tool call, also by several at once.
        Raises: OSError or SandboxUnavailable if the script cannot be started.
        """
