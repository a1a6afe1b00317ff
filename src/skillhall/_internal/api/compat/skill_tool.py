"""The Skill tool, which returns the instructions of a skill."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NotRequired, TypeAlias, TypedDict

from skillhall._internal.agents.tool_definition import Tool, ToolResult, get_argument
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import SKILLS_MODULE
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.sources.folder.bundle_reader import read_file_at
from skillhall.errors import SkillhallError, SkillParseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall._internal.api.compat.sandbox import Sandbox
    from skillhall._internal.api.compat.skills_module import SkillMetadata


class Activation(TypedDict):
    """A skill's instructions; empty if the conversation already contains them."""

    name: str
    instructions: str
    allowed_tools: NotRequired[list[str]]
    message: str


class ActivationFailure(TypedDict):
    """An error for the model."""

    error: str


SkillToolResult: TypeAlias = Activation | ActivationFailure


def create_skill_tool(
    skills: Iterable[SkillMetadata], sandbox: Sandbox | None = None
) -> SkillTool | None:
    """Return the tool for `skills`, or `None` if no skill is visible to models.

    With a sandbox, the paths of the skills are paths in it; otherwise they are local paths.

    ```python
    from skillhall import create_skill_tool, discover_skills

    tool = create_skill_tool(discover_skills("skills"))
    if tool is not None:
        print(tool("pdf-tools"))
    ```
    """
    first: dict[str, SkillMetadata] = {}
    for skill in filter(is_visible_to_models, skills):
        first.setdefault(skill.name, skill)
    return SkillTool(first, sandbox) if first else None


class SkillTool:
    """The tool of one conversation. A skill's instructions are returned only once.

    >>> tool = create_skill_tool(discover_skills("skills"))
    >>> tool("pdf-tools")["instructions"]
    '# Steps'
    """

    name = "Skill"
    description = (
        "Activates a skill: returns the instructions for a kind of task. Call it before starting "
        "a task that matches a skill's description, then follow the instructions."
    )

    def __init__(self, skills: Mapping[str, SkillMetadata], sandbox: Sandbox | None = None) -> None:
        self._skills = {key: skill for key, skill in skills.items() if is_visible_to_models(skill)}
        self._sandbox = sandbox
        self._activated: set[str] = set()

    @property
    def parameters(self) -> dict[str, object]:
        """The JSON Schema of the arguments."""
        return self.to_tool().parameters

    def to_tool(self) -> Tool:
        """Return this tool as a `Tool`."""
        schema = {
            "type": "string",
            "enum": list(self._skills),
            "description": "The name of the skill to activate.",
        }

        def handle(arguments: object) -> ToolResult:
            name = get_argument(arguments, "name")
            content = {**self(name if isinstance(name, str) else "")}
            return ToolResult(content=content, is_error="error" in content)

        return Tool(
            name=self.name,
            description=self.description,
            required=("name",),
            get_properties=lambda: {"name": schema},
            handler=handle,
        )

    def __call__(self, name: str) -> SkillToolResult:
        """Return the instructions of a skill, or an error that lists the available names."""
        skill = self._skills.get(name)
        if skill is None:
            names = ", ".join(self._skills)
            return {"error": f"There is no skill named {name!r}. Available skills: {names}"}
        if name in self._activated:
            message = f"Skill {name!r} is already active; its instructions were given before."
            return {"name": name, "instructions": "", "message": message}
        try:
            instructions = self._read_body(skill)
        except (SkillhallError, OSError) as error:
            return {"error": f"Skill {name!r} cannot be read: {error}"}
        self._activated.add(name)
        result: Activation = {
            "name": skill.name,
            "instructions": instructions,
            "message": f"Skill {skill.name!r} is active. Follow its instructions; "
            f"relative paths in them are relative to {PurePath(skill.path).parent}.",
        }
        if skill.allowed_tools:
            result["allowed_tools"] = list(skill.allowed_tools)
        return result

    def reset(self) -> None:
        """Start a new conversation: every skill can be activated again."""
        self._activated.clear()

    def _read_body(self, skill: SkillMetadata) -> str:
        if self._sandbox is not None:
            data = self._sandbox.read_file(skill.path)
        else:
            file = Path(skill.path).absolute()
            data = read_file_at(
                FolderHandle(str(file.parent)), RelativePath.parse(file.name), MAX_SKILL_MD_BYTES
            )
        parsed = parse_skill(data)
        for finding, effect in SKILLS_MODULE.load_policy.judge(parsed.findings):
            if effect is Effect.REJECT:
                raise SkillParseError(skill.path, finding.message)
        return parsed.body
