"""The built-in agent: the chat engine with the real listing of skills and their tools.

Needs the `pydantic-ai` extra.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from skillhall._internal.agents.agent_skills import AgentSkills, GatedAgentSkills
from skillhall._internal.agents.chat.chat import Chat
from skillhall._internal.agents.chat.events import Done, SkillLoaded, TextDelta
from skillhall._internal.agents.config.agent_config import AgentBudgets, AgentDefinition
from skillhall._internal.agents.instruction_skills import InstructionSource
from skillhall._internal.catalog.trust.gate import OPEN_GATE
from skillhall._internal.evals.eval_records import RunStatus, RunUsage
from skillhall._internal.evals.run_agents.chat_transcript import build_transcript
from skillhall._internal.evals.run_agents.folder_tools import READABLE_EXTENSIONS, FolderTools
from skillhall._internal.evals.run_agents.run_agent import RunOutcome
from skillhall._internal.evals.run_agents.script_tool import build_script_tool
from skillhall._internal.policy.profiles import LENIENT
from skillhall.errors import SkillhallError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic_ai.models import Model

    from skillhall._internal.agents.agent_skills import AgentSkillsSnapshot
    from skillhall._internal.evals.run_agents.run_agent import RunTask
    from skillhall._internal.evals.runs.run_limits import ModelPrice
    from skillhall._internal.settings import Settings

INSTRUCTIONS = (
    "You work in a folder with files; paths are relative to it. List the files with ListFiles, "
    "read them with ReadFile, and write your results with WriteFile. Do the user's task without "
    "asking questions, then reply with the result."
)
_ERRORS_OF_EVERY_RUN = ("unauthenticated", "invalid_argument")
_MAX_STORED_REPLY = 64 * 1024  # characters of a reply that exceeded the limit


@dataclass(slots=True, kw_only=True)
class ChatAgent:
    """The chat engine as the agent of runs. All runs share one model and its connections."""

    model: Model | None  # None in a dry run, which sends no requests
    model_name: str
    settings: Settings
    price: ModelPrice | None = None
    allows_scripts: bool = False  # gives the agent a tool for the scripts of skills
    _skills: dict[Path, AgentSkills] = field(default_factory=dict)

    @property
    def identity(self) -> Mapping[str, object]:
        """The model and the instructions; all runs depend on them."""
        return {
            "kind": "chat",
            "model": self.model_name,
            "instructions": INSTRUCTIONS,
            "scripts": self.allows_scripts,
        }

    async def __aenter__(self) -> Self:
        if self.model is not None:
            await self.model.__aenter__()
        return self

    async def __aexit__(self, *details: object) -> None:
        if self.model is not None:
            await self.model.__aexit__(None, None, None)

    async def run(self, task: RunTask) -> RunOutcome:
        """Send the prompt and wait for the reply.

        Raises: SpendingLimitReached, ModelUnavailable if every run would fail.
        """
        conversation = _RunConversation(self, task)
        start = time.monotonic()
        status, reason = RunStatus.COMPLETED, ""
        try:
            async with asyncio.timeout(task.limits.timeout) as timeout:
                await conversation.send()
        except TimeoutError:
            if not timeout.expired():
                raise
            status, reason = RunStatus.LIMITED, f"the limit of {task.limits.timeout:g} seconds"
        except TooLarge:
            status = RunStatus.LIMITED
            reason = f"the limit of {task.limits.max_output} bytes of output"
        except SkillhallError as error:
            if error.code in _ERRORS_OF_EVERY_RUN:
                raise
            status, reason = RunStatus.FAILED, str(error)
            if conversation.chat.usage.requests >= task.limits.max_requests:
                status = RunStatus.LIMITED
                reason = f"the limit of {task.limits.max_requests} requests"
        duration = round((time.monotonic() - start) * 1000)
        return RunOutcome(
            status=status,
            reason=f"{reason} was reached" if status is RunStatus.LIMITED else reason,
            reply=conversation.reply,
            loaded_skills=tuple(conversation.loaded_skills),
            usage=self.read_usage(conversation.chat, duration),
            transcript=build_transcript(conversation.chat),
        )

    def read_usage(self, chat: Chat, duration_ms: int = 0) -> RunUsage:
        """Return the usage of a chat so far, as counted by the provider."""
        usage = chat.usage
        tokens = usage.input_tokens, usage.output_tokens
        return RunUsage(
            requests=usage.requests,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            duration_ms=duration_ms,
            cost=None if self.price is None else self.price.cost_of(*tokens),
        )

    def open_skills(self, task: RunTask) -> AgentSkills:
        """Return the skills for a task. Runs with the same skills read them only once."""
        shared = self._skills.get(task.skills)
        if shared is None:
            agent = AgentDefinition(
                "eval",
                skills=(InstructionSource(str(task.skills)),),
                instructions=INSTRUCTIONS,
                budgets=AgentBudgets(requests=task.limits.max_requests),
                read_extensions=READABLE_EXTENSIONS,
            )
            # The user named the skills, and the command has checked the rules about them. A copy
            # has another folder and digest, so the rules would not find it.
            settings = self.settings._replace(log_usage=False, use_head_cache=False)
            shared = GatedAgentSkills(agent, settings, OPEN_GATE, LENIENT)
            self._skills[task.skills] = shared
        return _RunSkills(shared, task.folder)


class _RunSkills(AgentSkills):
    """Shared skills, with the folder of one run as working directory."""

    def __init__(self, shared: AgentSkills, folder: Path) -> None:
        settings = shared.settings._replace(working_directory=str(folder))
        super().__init__(shared.agent, settings, profile=shared.profile)
        self._shared = shared

    def snapshot(self) -> AgentSkillsSnapshot:
        """Return the snapshot of the shared skills."""
        return self._shared.snapshot()


class _RunConversation:
    """The conversation of one run."""

    def __init__(self, agent: ChatAgent, task: RunTask) -> None:
        self._agent = agent
        self._task = task
        self.reply = ""
        self.loaded_skills: dict[str, None] = {}
        self.chat = Chat(agent.open_skills(task), agent.model or agent.model_name)
        self.chat.max_reply_length = task.limits.max_output
        tools = FolderTools(task.folder, task.limits.max_output).tools()
        if agent.allows_scripts:
            tools = (*tools, build_script_tool(task, self.chat.tools))
        self.chat.tools.extra_tools = tools

    async def send(self) -> None:
        """Send the prompt and read the reply. Raises: SkillhallError, SpendingLimitReached."""
        requests = 0
        async with aclosing(self.chat.send(self._task.prompt)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    if len(self.reply) < _MAX_STORED_REPLY:
                        self.reply += event.text
                elif isinstance(event, SkillLoaded):
                    self.loaded_skills[event.skill] = None
                elif isinstance(event, Done):
                    self.reply = event.text
                    return  # the runner counts the usage of a run that has ended
                if self.chat.usage.requests != requests:
                    requests = self.chat.usage.requests
                    self._task.report_usage(self._agent.read_usage(self.chat))
