"""The tool `run_skill_script`, for agents of a program that passes a script runner."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from skillhall._internal.agents.scripts.script_runner import ScriptCall
from skillhall._internal.agents.skill_tools import SkillTools, build_tool, quote
from skillhall._internal.agents.tool_definition import ToolError, string_schema
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import SkillFileNotFound, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.agents.scripts.script_runner import ProcessResult, ScriptRunner
    from skillhall._internal.agents.skill_tools import Arguments
    from skillhall._internal.agents.tool_definition import Tool

SCRIPT_TOOL = "run_skill_script"
SCRIPT_PROPERTIES: Mapping[str, Mapping[str, object]] = {
    "name": string_schema("The name of the skill."),
    "path": string_schema("The path of the script, relative to the skill's directory."),
    "arguments": {
        "type": "array",
        "items": {"type": "string"},
        "description": "The arguments of the script, none by default.",
    },
}
_MAX_SHOWN = 16 * 1024  # characters of each stream
_SKILL_FOLDER = "skill"


@dataclass(frozen=True, slots=True)
class SkillScripts:
    """Runs the scripts of cleared skills with the runner of a program."""

    skills: SkillTools
    runner: ScriptRunner

    def tools(self) -> tuple[Tool, ...]:
        """Return the tool; none if there are no skills."""
        if not len(self.skills.provider.current_view()):
            return ()
        tool = build_tool(
            SCRIPT_TOOL,
            "Runs a script of a skill in a sandbox, with these arguments, and returns its output.",
            lambda: SCRIPT_PROPERTIES,
            ("name", "path"),
            self._run,
        )
        return (tool,)

    def _run(self, arguments: Arguments) -> str:
        view, name = self.skills.provider.current_view(), str(arguments["name"])
        row = self.skills.find_skill(view, name)
        subject = f"the script {quote(arguments['path'])} of the skill {row.name!r}"
        try:
            path = RelativePath.parse_lenient(str(arguments["path"]))
            files = view.read_files(row)
            if path.text not in files:
                raise SkillFileNotFound(path.text)
        except (SkillhallError, OSError) as error:
            raise self.skills.build_read_error(error, subject) from None
        try:
            with tempfile.TemporaryDirectory(prefix="skillhall-") as temporary:
                # What runs is what the gate cleared, whatever happens to the skill's folder.
                with WritableFolder(temporary) as folder:
                    folder.create_folder(_SKILL_FOLDER, files, fsync=False)
                call = ScriptCall(
                    skill=row.name,
                    folder=Path(temporary, _SKILL_FOLDER),
                    path=path.text,
                    arguments=tuple(list_script_arguments(arguments)),
                )
                return format_result(self.runner.run(call))
        except (SkillhallError, OSError, ValueError) as error:
            # Without the path of the file: models must not see local paths.
            reason = getattr(error, "strerror", None) or error
            raise ToolError(f"{subject} cannot be started: {reason}.", "not_started") from None


def list_script_arguments(arguments: Arguments) -> Sequence[str]:
    """Return the arguments of the script, whose types are checked."""
    return cast("Sequence[str]", arguments.get("arguments", ()))


def format_result(result: ProcessResult) -> str:
    """Return the output of a script as the model reads it."""
    parts = [f"Exit code: {result.exit_code}"]
    parts += [f"Stopped: {result.limit}"] if result.limit else []
    for title, data in (("Output", result.stdout), ("Errors", result.stderr)):
        text = data.decode("utf-8", "replace")
        if text:
            parts.append(f"{title}:\n{text[:_MAX_SHOWN]}")
    return "\n".join(parts)
