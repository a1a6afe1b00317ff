"""The tools of one conversation with an agent, independent of the framework.

Every call is traced. Loaded skills, read files and errors are reported as events; the usage log
records which skills are offered and used.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.agents.chat.events import FileRead, SkillLoaded, ToolFailed
from skillhall._internal.agents.file_tools import (
    LOCATION_PATH_HELP,
    ReadTools,
    SkillFileResolver,
)
from skillhall._internal.agents.scripts.skill_script_tool import SkillScripts
from skillhall._internal.agents.skill_tools import LoadedSkills, SkillTools
from skillhall._internal.agents.tool_definition import ToolResult, get_argument
from skillhall._internal.agents.tracing import is_traced, span
from skillhall._internal.agents.usage_recorder import UsageRecorder
from skillhall._internal.catalog.manifests import ManifestCache
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.render.activation import find_activation, is_section
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall.errors import SkillNotApproved, SkillNotFound, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillhall._internal.agents.agent_skills import AgentSkills, SkillSource
    from skillhall._internal.agents.chat.events import ToolEvent
    from skillhall._internal.agents.tool_definition import Tool
    from skillhall._internal.catalog.trust.gate import ClearedSkill
    from skillhall._internal.render.prompt_plan import PromptPlan

_MAX_QUOTED = 80  # characters of an unknown name in an error
_SKILL_CALL = re.compile(r"/(skill:)?(\S+)(?:\s+(.*))?", re.DOTALL)


class UserMessage(NamedTuple):
    """A user's message as sent to the model, and the skill that it called, if any."""

    text: str
    skill: str = ""


class AgentTools:
    """The tools of one conversation. A skill's instructions are returned only once.

    If the skills exceed the agent's budget, the system prompt prefers those that match `task`. Set
    `task` once, to the first message: model providers cache a prompt only while it stays the same.

    >>> tools = AgentTools(Skills.load("skills"))
    >>> tools.task = "Fill in the form application.pdf"
    >>> result = tools.call("load_skill", {"name": "pdf-tools"})
    >>> tools.loaded_names
    ('pdf-tools',)
    """

    def __init__(
        self,
        skills: SkillSource,
        on_event: Callable[[ToolEvent], None] = lambda _: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.skills: AgentSkills = skills.as_agent_skills()
        self.on_event = on_event
        self.task: str = ""
        self.extra_tools: tuple[Tool, ...] = ()  # of the program, besides those of the skills
        self._now = now
        self._task_prompt: tuple[PromptPlan, str, str] | None = None
        self._loaded_skills = LoadedSkills()
        self._manifests = ManifestCache()  # for the digests in traces
        self._user_called: dict[str, ClearedSkill] = {}  # hidden skills that the user called
        settings = self.skills.settings
        self._read_file = ReadTools(
            settings.working_directory,
            self.skills.agent.read_extensions,
            settings=settings,
            resolve_extra_files=lambda: SkillFileResolver(
                self.current_view(), self.skills.get_directory
            ),
            path_description=LOCATION_PATH_HELP,
            find_guarded_folders=self._find_guarded_folders,
        ).tools[0]

    def system_prompt(self) -> str:
        """Return the current system prompt and record the offered skills."""
        plan = self.skills.snapshot().plan
        if self.task.strip() and plan.reduced_skills:
            return self._get_task_prompt(plan)
        if self.skills.mark_plan_sent(plan):
            self._record_offered(plan)
        return self.skills.render_prompt(plan)

    def _get_task_prompt(self, plan: PromptPlan) -> str:
        """Return the prompt for the task; rebuild it only if `plan` or the task changed."""
        last = self._task_prompt
        if last is None or last[0] is not plan or last[1] != self.task:
            task_plan = self.skills.plan(self.task)
            self._record_offered(task_plan)
            # Not the plan for the task, which has an entry for every skill of a large catalog.
            last = self._task_prompt = plan, self.task, self.skills.render_prompt(task_plan)
        return last[2]

    def _record_offered(self, plan: PromptPlan) -> None:
        names = tuple(share.name for share in plan.listed_skills)
        self._usage.record("offered", names, plan.tokens)

    def tools(self) -> tuple[Tool, ...]:
        """Return the current tools; skill tools only if there are skills."""
        skill_tools, runner = self._build_skill_tools(), self.skills.script_runner
        candidates = (*skill_tools.tools(), self._read_file)
        names = self.skills.agent.tools
        own = (tool for tool in candidates if tool.name in names)
        scripts = SkillScripts(skill_tools, runner).tools() if runner else ()
        return tuple(
            replace(tool, handler=partial(self._call_and_record, tool))
            for tool in (*own, *scripts, *self.extra_tools)
        )

    def call(self, name: str, arguments: object) -> ToolResult:
        """Call a tool. An unknown name gives an error result."""
        tools = {tool.name: tool for tool in self.tools()}
        if name in tools:
            return tools[name].call(arguments)
        known = ", ".join(tools) or "none"
        problem = f"Error: unknown tool {name[:_MAX_QUOTED]!r}. Tools: {known}"
        return ToolResult(content=problem, is_error=True, code="not_found")

    @property
    def loaded_names(self) -> tuple[str, ...]:
        """The names of the skills loaded in this conversation, in order."""
        return self._loaded_skills.names

    def sync_history(self, texts: Iterable[str]) -> None:
        """Replace the loaded skills with those found in the texts of the conversation.

        If the host has removed a skill's instructions from it, the skill can be loaded again.
        """
        self._loaded_skills.reset()
        for activation in filter(None, map(find_activation, texts)):
            self._loaded_skills.mark_loaded(*activation)

    def reset(self) -> None:
        """Start a new conversation."""
        self.sync_history(())
        self._user_called.clear()
        self.task = ""

    def current_view(self) -> SkillView:
        """Return the agent's skills, and the hidden skills that the user has called."""
        view = self.skills.current_view()
        if not self._user_called:
            return view
        skills = (*(row.skill for row in view), *self._user_called.values())
        return SkillView(view.revision, view.profile, skills)

    def expand_message(self, message: str) -> UserMessage:
        """Replace `/name` or `/skill:name` at the start with the skill's instructions.

        Messages that do not call a skill are unchanged.
        Raises: SkillNotFound for `/skill:name`, SkillRejected.
        """
        match = _SKILL_CALL.fullmatch(message.strip())
        if match is None:
            return UserMessage(message)
        for skill in self.skills.snapshot().instructions.hidden:
            if skill.name == match[2]:
                self._user_called[skill.name] = skill._replace(hidden=False)
        try:
            row = self.current_view().find(match[2])
        except SkillNotFound:
            if match[1]:  # `/skill:name` can only mean a skill
                raise SkillNotFound(
                    match[2], hint="'/skills' lists the skills you can use"
                ) from None
            return UserMessage(message)
        result = self._build_skill_tools().load_skill(row.name)
        if result.is_error:
            raise SkillRejected(row.skill.location, [result.text.removeprefix("Error: ")])
        self._record_call("load_skill", {"name": row.name}, result, by_user=True)
        return UserMessage("\n\n".join(filter(None, (result.text, match[3]))), row.name)

    def user_invocable_names(self) -> tuple[str, ...]:
        """Return the names of the skills that the user can call, hidden ones included."""
        hidden = (skill.name for skill in self.skills.snapshot().instructions.hidden)
        return tuple(dict.fromkeys((*self.skills.current_view().skills, *hidden)))

    def _find_guarded_folders(self) -> list[str]:
        """Return the folders of held skills, and of skills with approved files."""
        view = self.skills.current_view()
        held = [skill.directory for skill, _, _ in view.held]
        return [*held, *(row.skill.directory for row in view if row.skill.approved)]

    def _build_skill_tools(self) -> SkillTools:
        names = self.skills.agent.tools
        return SkillTools(self, self._loaded_skills, self.skills.get_directory, names)

    def _call_and_record(self, tool: Tool, arguments: object) -> ToolResult:
        """Call a tool; report, record and trace the call."""
        # The names of OpenTelemetry's conventions for generative AI.
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool.name,
            "gen_ai.tool.type": "function",
            "gen_ai.agent.id": self.skills.agent.id,
        }
        with span(f"execute_tool {tool.name}", attributes) as details:
            result = tool.call(arguments)
            details["skillhall.tokens"] = self._record_call(tool.name, arguments, result)
            skill = get_argument(arguments, "name")
            if result.is_error:
                details["error.type"] = result.code or "tool_error"
            elif isinstance(skill, str):
                details["skillhall.skill"] = skill
                if is_traced():
                    details["skillhall.digest"] = self._find_digest(skill)
        return result

    def _find_digest(self, name: str) -> str:
        """Return the digest of a skill; "" if it is gone or its files cannot be read."""
        view = self.current_view()
        try:
            manifest = self._manifests.get_or_none(view, view.find(name))
        except (SkillNotFound, SkillNotApproved):
            return ""
        return manifest.digest if manifest else ""

    def _record_call(
        self, tool: str, arguments: object, result: ToolResult, *, by_user: bool = False
    ) -> int:
        """Report a call as an event, record it and return the tokens of its result."""
        text = result.text
        tokens = estimate_tokens(text)
        activation = find_activation(text)
        path = get_argument(arguments, "path")
        if tool == "load_skill" and is_section(text):  # counts as reading a file, not as loading
            tool, path = "read_skill_file", SKILL_MD
        is_repeated = tool == "load_skill" and activation is None and not result.is_error
        skill = ""
        if not is_repeated:
            view = self.current_view()
            skill = self._usage.record_call(view, tool, arguments, result, tokens)
        if result.is_error:
            self.on_event(ToolFailed(tool=tool, message=text.removeprefix("Error: ")))
        elif tool == "load_skill" and activation:
            self.on_event(SkillLoaded(skill=activation[0], tokens=tokens, by_user=by_user))
        elif tool in ("read_skill_file", self._read_file.name):
            if tool == "read_skill_file":
                skill = skill or str(get_argument(arguments, "name"))
            self.on_event(FileRead(skill=skill, path=str(path), tokens=tokens))
        return tokens

    @property
    def _usage(self) -> UsageRecorder:
        return UsageRecorder(self.skills.settings, self.skills.agent.id, self._now)


def to_agent_tools(tools: AgentTools | SkillSource) -> AgentTools:
    """Return `tools` itself; for skills, the tools of a new conversation."""
    return tools if isinstance(tools, AgentTools) else AgentTools(tools)
