"""The tools of one conversation with an agent, whatever framework calls them.

Every call is told to whoever listens, noted in the usage log, and traced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.agents.chat.events import FileRead, SkillLoaded, ToolFailed
from skillhall._internal.agents.file_resolver import ToldFiles
from skillhall._internal.agents.file_tools import AT_LOCATION, ReadTools
from skillhall._internal.agents.skill_tools import Conversation, SkillTools
from skillhall._internal.agents.tool_protocol import Answer, Around
from skillhall._internal.agents.tracing import span
from skillhall._internal.catalog.skill_view import Offer
from skillhall._internal.render.activation import activation_in
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.storage.usage_log import Usage, UsageLog
from skillhall.errors import SkillNotFound, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from skillhall._internal.agents.agent_skills import AgentSkills
    from skillhall._internal.agents.chat.events import ToolEvent
    from skillhall._internal.agents.tool_protocol import Tool
    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.catalog.skill_view import Offered
    from skillhall._internal.storage.usage_log import Event

_SHOWN = 80  # characters of a wrong name that an error repeats
_CALL = re.compile(r"/(skill:)?(\S+)(?:\s+(.*))?", re.DOTALL)


class Said(NamedTuple):
    """A person's message as the model gets it, and the skill that it called, if any."""

    text: str
    skill: str = ""


class AgentTools:
    """The tools of one conversation; each skill's instructions are given once in it."""

    def __init__(
        self,
        skills: AgentSkills,
        notice: Callable[[ToolEvent], None] = lambda _: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.skills = skills
        self.notice = notice
        settings = skills.settings
        self._recorder = _Recorder(
            skills.agent.id, settings.log_usage, settings.data_directory, now
        )
        self._conversation = Conversation()
        self._called: dict[str, Skill] = {}  # by a person, though no model is told of them
        self._loaded: dict[str, None] = {}
        read = ReadTools(
            settings.working_directory,
            skills.agent.read_extensions,
            settings=settings,
            told=self._told_files,
            about_path=AT_LOCATION,
        )
        self._read_file = read.tools[0]

    def system_prompt(self) -> str:
        """What the model is told before anything else, as it is now."""
        plan = self.skills.current().plan
        if self.skills.is_first_telling(plan):
            self._recorder.note("offered", tuple(share.name for share in plan.shares), plan.tokens)
        return self.skills.text()

    def tools(self) -> tuple[Tool, ...]:
        """The tools there are now; those of skills only if there are skills."""
        every: tuple[Tool, ...] = (*self._skill_tools().tools(), self._read_file)
        given = self.skills.agent.tools
        return tuple(_Recorded(tool, self) for tool in every if tool.name in given)

    def call(self, name: str, arguments: object) -> Answer:
        """The answer of the tool of that name, also if there is none."""
        tools = {tool.name: tool for tool in self.tools()}
        if name in tools:
            return tools[name].answer(arguments)
        known = ", ".join(tools) or "none"
        problem = f"Error: there is no tool {name[:_SHOWN]!r}. Tools: {known}"
        return Answer(problem, is_error=True, code="not_found")

    @property
    def loaded(self) -> tuple[str, ...]:
        """The skills whose instructions the conversation has, in the order they came."""
        return tuple(self._loaded)

    def recall(self, texts: Iterable[str]) -> None:
        """Know what the texts of the conversation hold, and nothing else: they may be cut."""
        self._conversation.reset()
        self._loaded.clear()
        for found in filter(None, map(activation_in, texts)):
            self._conversation.is_news(*found)
            self._loaded[found[0]] = None

    def reset(self) -> None:
        """Start a new conversation."""
        self.recall(())
        self._called.clear()

    def offer(self) -> Offer:
        """The skills that the tools know: the agent's, and those that a person called."""
        offer = self.skills.offer()
        if not self._called:
            return offer
        skills = (*(row.skill for row in offer), *self._called.values())
        return Offer(offer.revision, offer.profile, skills)

    def said(self, message: str) -> Said:
        """A message as the model gets it: `/name …` and `/skill:name …` bring the skill along.

        Other text that begins with a slash stays as it is. Raises: SkillNotFound, SkillRejected.
        """
        found = _CALL.fullmatch(message.strip())
        if found is None:
            return Said(message)
        row = self._row(found[2])
        if row is None:
            if found[1]:
                raise SkillNotFound(found[2], hint="'/skills' lists those you can call")
            return Said(message)
        text = self._activated(row)
        return Said("\n\n".join(filter(None, (text, found[3]))), row.name)

    def callable_names(self) -> tuple[str, ...]:
        """The skills that a person can call by name."""
        hidden = (skill.name for skill in self.skills.current().instructions.for_people)
        return tuple(dict.fromkeys((*self.skills.offer().skills, *hidden)))

    def _skill_tools(self) -> SkillTools:
        given = self.skills.agent.tools
        return SkillTools(self, self._conversation, self.skills.place, given)

    def _told_files(self) -> ToldFiles:
        return ToldFiles(self.offer(), self.skills.place)

    def _row(self, name: str) -> Offered | None:
        for skill in self.skills.current().instructions.for_people:
            if skill.name == name:
                self._called[name] = skill._replace(hidden=False)
        try:
            return self.offer().find(name)
        except SkillNotFound:
            return None

    def _name_of(self, asked: str) -> str:
        """What the skill is called; it may have been asked for by its id, and be gone by now."""
        try:
            return self.offer().find(asked).name
        except SkillNotFound:
            return asked

    def _activated(self, row: Offered) -> str:
        answer = self._skill_tools().load(row.name)
        if answer.is_error:
            raise SkillRejected(row.skill.location, [str(answer.content).removeprefix("Error: ")])
        self.observe("load_skill", {"name": row.name}, answer, by_person=True)
        return str(answer.content)

    def observe(
        self, tool: str, arguments: object, answer: Answer, *, by_person: bool = False
    ) -> int:
        """Tell and note what a call gave; how many tokens that was."""
        text = as_text(answer.content)
        tokens = estimate_tokens(text)
        if answer.is_error:
            self.notice(ToolFailed(tool, text.removeprefix("Error: ")))
            return tokens
        given = arguments if isinstance(arguments, Mapping) else {}
        skill = str(given.get("name", ""))
        if tool == "load_skill" and (found := activation_in(text)):
            name, _ = found
            self._loaded[name] = None
            self._recorder.note("loaded", (name,), tokens)
            self.notice(SkillLoaded(name, tokens, by_person))
        elif tool == "read_skill_file":
            name = self._name_of(skill)
            self._recorder.note("read", (name,), tokens)
            self.notice(FileRead(name, str(given["path"]), tokens))
        elif tool == self._read_file.name:
            self.notice(FileRead("", str(given["path"]), tokens))
        return tokens


@dataclass(frozen=True, slots=True)
class _Recorded(Around["Tool"]):
    """A tool whose calls are told, noted and traced."""

    owner: AgentTools = field(repr=False)

    def answer(self, arguments: object) -> Answer:
        """The answer, and whether it is an error."""
        agent = self.owner.skills.agent.id
        attributes = {"gen_ai.tool.name": self.name, "gen_ai.agent.id": agent}
        with span(f"execute_tool {self.name}", attributes) as noticed:
            answer = self.tool.answer(arguments)
            noticed["skillhall.tokens"] = self.owner.observe(self.name, arguments, answer)
            noticed.update(_skill_of(arguments, answer))
        return answer


def as_text(content: str | Mapping[str, object]) -> str:
    """What a tool answered, as one text."""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _skill_of(arguments: object, answer: Answer) -> Iterator[tuple[str, str]]:
    """What a span says besides: the name of a skill that exists, or the class of the error."""
    if answer.is_error:
        yield "error.type", answer.code or "tool_error"
    elif isinstance(arguments, Mapping) and isinstance(arguments.get("name"), str):
        yield "skillhall.skill", str(arguments["name"])


@dataclass(frozen=True, slots=True)
class _Recorder:
    """Notes what an agent does with skills, unless that is turned off."""

    agent: str
    is_on: bool
    data_directory: str
    now: Callable[[], datetime]

    def note(self, event: Event, skills: tuple[str, ...], tokens: int) -> None:
        if self.is_on and self.data_directory:
            at = self.now().isoformat(timespec="seconds")
            UsageLog(self.data_directory).note(Usage(at, self.agent, event, skills, tokens))
