"""Scripts of a skill that check outputs, in the sandbox.

They run only for users who allowed them.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.scripts.script_sandbox import ScriptSandbox
from skillhall._internal.evals.eval_records import Verdict
from skillhall._internal.evals.grading.grader import Grades, Judgment
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.evals.eval_assertion import CheckKind
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.agents.scripts.script_runner import ProcessResult
    from skillhall._internal.evals.grading.grader import GradingTask
    from skillhall._internal.evals.grading.run_outputs import RunOutputs
    from skillhall._internal.evals.runs.evaluated_skill import EvaluatedSkill
    from skillhall._internal.skill.evals.eval_assertion import EvalAssertion

_FAILED_TO_START = 126  # and 127: the command cannot be executed, or is missing
_MAX_EVIDENCE = 300  # characters
_MODE, _EXECUTABLE_MODE = 0o644, 0o755


@dataclass(frozen=True, slots=True)
class ScriptGrader:
    """The grader of assertions whose check is a script.

    The working directory of a script is a copy of the output files, and its input is the reply.
    Exit code 0 passes. The last line that it prints is the evidence.
    """

    skill: EvaluatedSkill
    name: str = "script"

    @property
    def identity(self) -> str:
        """The digest of the skill, which contains the scripts."""
        return f"script {self.skill.digest}"

    def accepts(self, assertion: EvalAssertion) -> bool:
        """Whether the check of the assertion is a script."""
        return assertion.check is not None and assertion.check.kind is CheckKind.SCRIPT

    async def grade(self, task: GradingTask, assertions: Sequence[EvalAssertion]) -> Grades:
        """Return a judgment for each assertion."""
        return Grades(
            [
                await asyncio.to_thread(self._run, one.check.value, task.outputs)
                for one in assertions
                if one.check is not None
            ]
        )

    def _run(self, script: str, outputs: RunOutputs) -> Judgment:
        """Run a script with copies of the skill and of the outputs."""
        path = RelativePath.parse(script)
        if path.text not in self.skill.files:
            return Judgment(Verdict.NOT_JUDGED, f"the skill has no file {script!r}", is_final=False)
        with tempfile.TemporaryDirectory(prefix="skillhall-eval-") as root:
            base = Path(root).resolve()
            try:
                with WritableFolder(str(base)) as folder:
                    folder.create_folder("home", {})
                    folder.create_folder("skill", self.skill.files)
                    folder.create_folder("outputs", _read_outputs(outputs))
                sandbox = ScriptSandbox(
                    folder=base / "outputs", home=base / "home", scripts=base / "skill"
                )
                reply = outputs.reply.encode("utf-8", "replace")
                return _judge(sandbox.run(base.joinpath("skill", *path.parts), stdin=reply))
            except (OSError, SkillhallError) as error:
                reason = f"the script cannot be started: {error}"
                return Judgment(Verdict.NOT_JUDGED, reason, is_final=False)


def _read_outputs(outputs: RunOutputs) -> Mapping[str, tuple[bytes, int]]:
    return {
        path: (file.read(), _EXECUTABLE_MODE if file.executable else _MODE)
        for path, file in outputs.files.items()
    }


def _judge(result: ProcessResult) -> Judgment:
    lines = [*result.stderr.decode("utf-8", "replace").splitlines()]
    lines += result.stdout.decode("utf-8", "replace").splitlines()
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
    evidence = f"exit code {result.exit_code}: {last[:_MAX_EVIDENCE]}"
    if result.limit:
        return Judgment(Verdict.NOT_JUDGED, f"the script was stopped: {result.limit}")
    if result.exit_code >= _FAILED_TO_START or result.exit_code < 0:
        return Judgment(Verdict.NOT_JUDGED, f"the script did not end normally: {evidence}")
    return Judgment(Verdict.PASSED if result.exit_code == 0 else Verdict.FAILED, evidence)
