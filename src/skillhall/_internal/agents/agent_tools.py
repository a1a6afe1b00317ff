"""The tools of one conversation with an agent, independent of the framework.

Every call is reported as an event, recorded in the usage log and traced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.agents.chat.events import FileRead, SkillLoaded, ToolFailed
from skillhall._internal.agents.file_resolver import SkillFileResolver
from skillhall._internal.agents.file_tools import LOCATION_PATH_HELP, ReadTools
from skillhall._internal.agents.skill_tools import LoadedSkills, SkillTools
from skillhall._internal.agents.tool_protocol import ToolResult, ToolWrapper
from skillhall._internal.agents.tracing import span
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.render.activation import find_activation
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.storage.usage_log import UsageLog, UsageRecord
from skillhall.errors import SkillNotFound, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from skillhall._internal.agents.agent_skills import AgentSkills, SkillSource
    from skillhall._internal.agents.chat.events import ToolEvent
    from skillhall._internal.agents.tool_protocol import Tool
    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.skill_view import ViewedSkill
    from skillhall._internal.storage.usage_log import UsageEvent

_MAX_QUOTED = 80  # characters of an unknown name in an error
_SKILL_CALL = re.compile(r"/(skill:)?(\S+)(?:\s+(.*))?", re.DOTALL)


class UserMessage(NamedTuple):
    """A user's message as the model gets it, and the skill that it called, if any."""

    text: str
    skill: str = ""


class AgentTools:
    """The tools of one conversation. The instructions of a skill are returned once."""

    def __init__(
        self,
        skills: SkillSource,
        on_event: Callable[[ToolEvent], None] = lambda _: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.skills: AgentSkills = skills.as_agent_skills()
        self.on_event = on_event
        settings = self.skills.settings
        self._recorder = _UsageRecorder(
            self.skills.agent.id, settings.log_usage, settings.data_directory, now
        )
        self._loaded_skills = LoadedSkills()
        self._user_called: dict[str, CatalogSkill] = {}  # hidden skills that the user called
        self._loaded_names: dict[str, None] = {}
        read = ReadTools(
            settings.working_directory,
            self.skills.agent.read_extensions,
            settings=settings,
            resolve_extra_files=self._build_file_resolver,
            path_description=LOCATION_PATH_HELP,
        )
        self._read_file = read.tools[0]

    def system_prompt(self) -> str:
        """Return the current system prompt and record the offered skills."""
        plan = self.skills.snapshot().plan
        if self.skills.mark_plan_sent(plan):
            self._recorder.record(
                "offered", tuple(share.name for share in plan.skills), plan.tokens
            )
        return self.skills.system_prompt()

    def tools(self) -> tuple[Tool, ...]:
        """Return the current tools; skill tools only if there are skills."""
        candidates: tuple[Tool, ...] = (*self._build_skill_tools().tools(), self._read_file)
        enabled = self.skills.agent.tools
        return tuple(_RecordedTool(tool, self) for tool in candidates if tool.name in enabled)

    def call(self, name: str, arguments: object) -> ToolResult:
        """Call a tool. An unknown name gives an error result."""
        tools = {tool.name: tool for tool in self.tools()}
        if name in tools:
            return tools[name].call(arguments)
        known = ", ".join(tools) or "none"
        problem = f"Error: unknown tool {name[:_MAX_QUOTED]!r}. Tools: {known}"
        return ToolResult(problem, is_error=True, code="not_found")

    @property
    def loaded_names(self) -> tuple[str, ...]:
        """The skills loaded in this conversation, in order."""
        return tuple(self._loaded_names)

    def sync_history(self, texts: Iterable[str]) -> None:
        """Find the loaded skills in the texts of the conversation, which may be truncated."""
        self._loaded_skills.reset()
        self._loaded_names.clear()
        for activation in filter(None, map(find_activation, texts)):
            self._loaded_skills.mark_loaded(*activation)
            self._loaded_names[activation[0]] = None

    def reset(self) -> None:
        """Start a new conversation."""
        self.sync_history(())
        self._user_called.clear()

    def current_view(self) -> SkillView:
        """Return the agent's skills and the hidden ones that the user called."""
        view = self.skills.current_view()
        if not self._user_called:
            return view
        skills = (*(row.skill for row in view), *self._user_called.values())
        return SkillView(view.revision, view.profile, skills)

    def expand_message(self, message: str) -> UserMessage:
        """Expand `/name …` and `/skill:name …` to the skill's instructions and the rest.

        Other messages are unchanged. Raises: SkillNotFound, SkillRejected.
        """
        match = _SKILL_CALL.fullmatch(message.strip())
        if match is None:
            return UserMessage(message)
        row = self._find_skill(match[2])
        if row is None:
            if match[1]:  # `/skill:name` can only mean a skill
                raise SkillNotFound(match[2], hint="'/skills' lists those you can call")
            return UserMessage(message)
        text = self._activate(row)
        return UserMessage("\n\n".join(filter(None, (text, match[3]))), row.name)

    def user_invocable_names(self) -> tuple[str, ...]:
        """Return the skills that the user can call by name."""
        hidden = (skill.name for skill in self.skills.snapshot().instructions.hidden)
        return tuple(dict.fromkeys((*self.skills.current_view().skills, *hidden)))

    def _build_skill_tools(self) -> SkillTools:
        names = self.skills.agent.tools
        return SkillTools(self, self._loaded_skills, self.skills.get_directory, names)

    def _build_file_resolver(self) -> SkillFileResolver:
        return SkillFileResolver(self.current_view(), self.skills.get_directory)

    def _find_skill(self, name: str) -> ViewedSkill | None:
        for skill in self.skills.snapshot().instructions.hidden:
            if skill.name == name:
                self._user_called[name] = skill._replace(hidden=False)
        try:
            return self.current_view().find(name)
        except SkillNotFound:
            return None

    def _resolve_name(self, name_or_id: str) -> str:
        """Return the name of a skill; the argument itself if the skill is gone."""
        try:
            return self.current_view().find(name_or_id).name
        except SkillNotFound:
            return name_or_id

    def _activate(self, row: ViewedSkill) -> str:
        result = self._build_skill_tools().load_skill(row.name)
        if result.is_error:
            raise SkillRejected(row.skill.location, [str(result.content).removeprefix("Error: ")])
        self.record_call("load_skill", {"name": row.name}, result, by_user=True)
        return str(result.content)

    def record_call(
        self, tool: str, arguments: object, result: ToolResult, *, by_user: bool = False
    ) -> int:
        """Report a call as an event, record it and return the tokens of its result."""
        text = result.text
        tokens = estimate_tokens(text)
        if result.is_error:
            self.on_event(ToolFailed(tool, text.removeprefix("Error: ")))
            return tokens
        values = arguments if isinstance(arguments, Mapping) else {}
        skill = str(values.get("name", ""))
        if tool == "load_skill" and (activation := find_activation(text)):
            name, _ = activation
            self._loaded_names[name] = None
            self._recorder.record("loaded", (name,), tokens)
            self.on_event(SkillLoaded(name, tokens, by_user))
        elif tool == "read_skill_file":
            name = self._resolve_name(skill)
            self._recorder.record("read", (name,), tokens)
            self.on_event(FileRead(name, str(values["path"]), tokens))
        elif tool == self._read_file.name:
            self.on_event(FileRead("", str(values["path"]), tokens))
        return tokens


def to_agent_tools(tools: AgentTools | SkillSource) -> AgentTools:
    """Return the tools of a conversation; new ones if `tools` are only skills."""
    return tools if isinstance(tools, AgentTools) else AgentTools(tools)


@dataclass(frozen=True, slots=True)
class _RecordedTool(ToolWrapper["Tool"]):
    """A tool whose calls are reported, recorded and traced."""

    agent_tools: AgentTools = field(repr=False)

    def call(self, arguments: object) -> ToolResult:
        """Call the tool and return its result."""
        agent = self.agent_tools.skills.agent.id
        attributes = {"gen_ai.tool.name": self.name, "gen_ai.agent.id": agent}
        with span(f"execute_tool {self.name}", attributes) as details:
            result = self.tool.call(arguments)
            details["skillhall.tokens"] = self.agent_tools.record_call(self.name, arguments, result)
            details.update(_build_span_attributes(arguments, result))
        return result


def _build_span_attributes(arguments: object, result: ToolResult) -> Iterator[tuple[str, str]]:
    """Yield the name of the skill, or the class of the error."""
    if result.is_error:
        yield "error.type", result.code or "tool_error"
    elif isinstance(arguments, Mapping) and isinstance(arguments.get("name"), str):
        yield "skillhall.skill", str(arguments["name"])


@dataclass(frozen=True, slots=True)
class _UsageRecorder:
    """Records an agent's use of skills, unless disabled."""

    agent: str
    is_enabled: bool
    data_directory: str
    now: Callable[[], datetime]

    def record(self, event: UsageEvent, skills: tuple[str, ...], tokens: int) -> None:
        if self.is_enabled and self.data_directory:
            timestamp = self.now().isoformat(timespec="seconds")
            UsageLog(self.data_directory).record(
                UsageRecord(timestamp, self.agent, event, skills, tokens)
            )
