"""Haystack adapter: a toolset, a hook for its instructions, and a store for its own toolset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from haystack.components.agents import State
from haystack.components.agents.state import replace_values
from haystack.core.errors import SerializationError
from haystack.dataclasses import ChatMessage, ChatRole, SkillInfo
from haystack.tools import Toolset
from haystack.tools.errors import ToolInvocationError
from haystack.tools.tool import Tool as HaystackTool

from skillhall._internal.agents.agent_tools import AgentTools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillhall._internal.agents.agent_skills import SkillSource
    from skillhall._internal.agents.tool_definition import Tool

_MARK = "skillhall"  # in the metadata of the system message of `SkillsHook`


class _NotSerializable:
    """Methods of the framework's interfaces that save a pipeline as YAML."""

    def to_dict(self) -> NoReturn:
        """Raise: SerializationError, because the skills are objects of this program."""
        raise SerializationError(
            f"{type(self).__name__} cannot be serialized: its skills are objects of this program. "
            "Add it to the agent in code."
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> NoReturn:
        """Raise: SerializationError."""
        del data
        raise SerializationError(f"{cls.__name__} cannot be deserialized: create it in code.")


class SkillsToolset(_NotSerializable, Toolset):
    """Toolset that gives an agent skills, with `SkillsHook` for the system prompt.

    It is stateless: the messages of each run show which skills are loaded.

    >>> toolset = SkillsToolset(Skills.load("skills"))
    >>> [tool.name for tool in toolset][:3]
    ['list_skills', 'search_skills', 'load_skill']
    """

    def __init__(self, skills: SkillSource) -> None:
        super().__init__([])
        self._skills = skills.as_agent_skills()

    def __iter__(self) -> Iterator[HaystackTool]:
        """Iterate over the current tools; an agent does so before each request."""
        return (_build_tool(tool, self._skills) for tool in AgentTools(self._skills).tools())


class SkillsHook(_NotSerializable):
    """Hook that adds the current skills to the system prompt.

    Use it as in `Agent(hooks={"before_llm": [SkillsHook(skills)]}, …)`. Do not use `system_prompt`,
    which is a template: it would evaluate braces in the descriptions of skills.

    >>> hook = SkillsHook(Skills.load("skills"))
    """

    def __init__(self, skills: SkillSource) -> None:
        self._skills = skills.as_agent_skills()

    def run(self, state: State) -> None:
        """Replace the system message of the last request with the current one."""
        messages = [message for message in state.data["messages"] if _MARK not in message.meta]
        if text := AgentTools(self._skills).system_prompt():
            others = (at for at, one in enumerate(messages) if one.role != ChatRole.SYSTEM)
            message = ChatMessage.from_system(text, meta={_MARK: True})
            messages.insert(next(others, len(messages)), message)
        state.set("messages", messages, handler_override=replace_values)


class _SkillTool(HaystackTool):
    def invoke(self, **kwargs: Any) -> Any:  # noqa: ANN401 - as in the base class
        """Call the tool; the base class would add the arguments to the text of an error."""
        assert self.function is not None  # noqa: S101 - for the type checker; see `_build_tool`
        return self.function(**kwargs)


def _build_tool(tool: Tool, skills: SkillSource) -> HaystackTool:
    # The framework passes the state because of its annotation.
    def call(state: State | None = None, **arguments: object) -> str:
        tools = AgentTools(skills)
        if state is not None:
            tools.sync_history(_iter_texts(state.data["messages"]))
        result = tools.call(tool.name, arguments)
        if result.is_error:
            raise ToolInvocationError(result.text, tool.name)
        return result.text

    return _SkillTool(tool.name, tool.description, tool.parameters, call)


def _iter_texts(messages: Iterable[ChatMessage]) -> Iterator[str]:
    """Yield the texts and the results of tools."""
    for message in messages:
        yield message.text or ""
        yield from (str(result.result) for result in message.tool_call_results)


class SkillhallStore(_NotSerializable):
    """Store of skills for the framework's own `SkillToolset`.

    >>> from haystack.tools import SkillToolset
    >>> toolset = SkillToolset(SkillhallStore(Skills.load("skills")))
    """

    def __init__(self, skills: SkillSource) -> None:
        self._skills = skills.as_agent_skills()

    def list_skills(self) -> dict[str, SkillInfo]:
        """Return the current skills by name."""
        view = self._skills.current_view()
        return {row.name: SkillInfo(row.name, row.skill.description) for row in view}

    def load_skill(self, name: str) -> tuple[str, list[str]]:
        """Return the text for a model that loads the skill, which lists its files.

        Raises: KeyError.
        """
        result = AgentTools(self._skills).call("load_skill", {"name": name})
        if result.is_error:
            raise KeyError(result.text)
        return result.text, []

    def read_skill_file(self, name: str, path: str) -> str:
        """Return a text file of the skill. Raises: FileNotFoundError."""
        arguments = {"name": name, "path": path}
        result = AgentTools(self._skills).call("read_skill_file", arguments)
        if result.is_error:
            raise FileNotFoundError(result.text)
        return result.text
