"""External agent: a command that executes a run in a folder of its own.

Its home folder is empty.
"""

from __future__ import annotations

import re
import shlex
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from skillhall._internal.agents.scripts.bounded_process import ProcessOptions, run_process
from skillhall._internal.agents.scripts.script_sandbox import build_clean_environment
from skillhall._internal.evals.eval_records import RunStatus, RunUsage
from skillhall._internal.evals.run_agents.run_agent import RunOutcome
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.agents.scripts.script_runner import ProcessResult
    from skillhall._internal.evals.run_agents.run_agent import RunTask, Transcript

# Where common agents look for the skills of a user.
SKILL_FOLDERS = (".agents/skills", ".claude/skills")
_PLACEHOLDER = re.compile(r"\{(prompt|folder|skills)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAgent:
    """A command template. Without `{prompt}`, the command reads the prompt from stdin.

    The values of placeholders are complete arguments or parts of one: there is no shell.
    """

    command: tuple[str, ...]
    # Variables that the command gets besides HOME and PATH. Their values may be secrets.
    environment: Mapping[str, str]
    skill_folders: Sequence[str] = SKILL_FOLDERS  # relative to the home folder

    @classmethod
    def parse(
        cls,
        template: str,
        environment: Mapping[str, str],
        skill_folders: Sequence[str] = (),
    ) -> Self:
        """Return the agent of a template such as `agent --quiet {prompt}`.

        Raises: ConfigInvalid, UnsafePath for a folder outside of the home folder.
        """
        try:
            command = tuple(shlex.split(template))
        except ValueError as error:
            raise ConfigInvalid(template, str(error).lower()) from None
        if not command:
            raise ConfigInvalid(template, "it is empty")
        if shutil.which(command[0]) is None:
            raise ConfigInvalid(template, f"the program {command[0]!r} is not installed")
        for folder in skill_folders:
            RelativePath.parse(folder)
        return cls(
            command=command,
            environment=environment,
            skill_folders=skill_folders or SKILL_FOLDERS,
        )

    @property
    def identity(self) -> Mapping[str, object]:
        """The command and the names of its variables; their values are secrets."""
        return {
            "kind": "command",
            "command": [*self.command],
            "variables": sorted(self.environment),
            "skill_folders": [*self.skill_folders],
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        pass

    async def run(self, task: RunTask) -> RunOutcome:
        """Run the command and wait for it."""
        for folder in self.skill_folders:
            shutil.copytree(task.skills, task.home / folder)
        values = {
            "prompt": task.prompt,
            "folder": str(task.folder),
            "skills": str(task.home / self.skill_folders[0]),
        }
        command = [_PLACEHOLDER.sub(lambda match: values[match[1]], part) for part in self.command]
        has_prompt = any("{prompt}" in part for part in self.command)
        options = ProcessOptions(
            folder=str(task.folder),
            environment={**build_clean_environment(task.home), **self.environment},
            timeout=task.limits.timeout,
            max_output=task.limits.max_output,
            stdin=b"" if has_prompt else task.prompt.encode(),
        )
        start = time.monotonic()
        try:
            result = await run_process(command, options)
        except (OSError, ValueError) as error:
            return RunOutcome(status=RunStatus.FAILED, reason=f"cannot start the command: {error}")
        duration = round((time.monotonic() - start) * 1000)
        return _build_outcome(task, result, RunUsage(duration_ms=duration))


def _build_outcome(task: RunTask, result: ProcessResult, usage: RunUsage) -> RunOutcome:
    status, reason = RunStatus.COMPLETED, ""
    if result.limit:
        status, reason = RunStatus.LIMITED, result.limit
    elif result.exit_code:
        status, reason = RunStatus.FAILED, f"the command ended with exit code {result.exit_code}"
    reply = result.stdout.decode("utf-8", "replace")
    errors = result.stderr.decode("utf-8", "replace")
    transcript: Transcript = [{"role": "user", "content": task.prompt}]
    transcript.append({"role": "assistant", "content": reply})
    if errors:
        transcript.append({"role": "log", "content": errors})
    return RunOutcome(
        status=status, reason=reason, reply=reply.strip(), usage=usage, transcript=transcript
    )
