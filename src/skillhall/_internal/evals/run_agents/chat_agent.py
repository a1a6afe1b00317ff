"""Built-in agent: the chat engine with the real listing of skills and tools.

Needs the `pydantic-ai` extra.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded, UserError

from skillhall._internal.agents.agent_skills import AgentSkills, GatedAgentSkills
from skillhall._internal.agents.chat.events import SkillLoaded
from skillhall._internal.agents.chat.models import open_model, to_model_unavailable
from skillhall._internal.agents.config.agent_config import AgentDefinition
from skillhall._internal.agents.instruction_skills import InstructionSource
from skillhall._internal.catalog.trust.gate import OPEN_GATE
from skillhall._internal.evals.eval_records import RunStatus
from skillhall._internal.evals.run_agents.agent_conversation import AgentConversation
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
    from skillhall._internal.agents.chat.events import ToolEvent
    from skillhall._internal.evals.run_agents.run_agent import RunTask
    from skillhall._internal.evals.runs.run_limits import ModelPrice
    from skillhall._internal.settings import Settings

INSTRUCTIONS = (
    "You work in a folder with files; paths are relative to it. List the files with ListFiles, "
    "read them with ReadFile, and write your results with WriteFile. Do the user's task without "
    "asking questions, then reply with the result."
)
_ERRORS_OF_EVERY_RUN = ("unauthenticated", "invalid_argument")


@dataclass(slots=True, kw_only=True)
class ChatAgent:
    """The chat engine as the agent of runs.

    All runs share one model and its connections.
    """

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
        skills = self.open_skills(task)
        loaded_skills: dict[str, None] = {}

        def note_event(event: ToolEvent) -> None:
            if isinstance(event, SkillLoaded):
                loaded_skills[event.skill] = None

        model = self.model or open_model(self.model_name)
        conversation = AgentConversation(skills, model, note_event, task.limits.max_output)
        status, reason = RunStatus.COMPLETED, ""
        try:
            async with asyncio.timeout(task.limits.timeout) as timeout:
                await self._send(conversation, task)
        except TimeoutError:
            if not timeout.expired():
                raise
            status, reason = RunStatus.LIMITED, f"the limit of {task.limits.timeout:g} seconds"
        except TooLarge:
            status = RunStatus.LIMITED
            reason = f"the limit of {task.limits.max_output} bytes of output"
        except UsageLimitExceeded:
            status = RunStatus.LIMITED
            reason = f"the limit of {task.limits.max_requests} requests"
        except SkillhallError as error:
            if error.code in _ERRORS_OF_EVERY_RUN:
                raise
            status, reason = RunStatus.FAILED, str(error)
        return RunOutcome(
            status=status,
            reason=f"{reason} was reached" if status is RunStatus.LIMITED else reason,
            reply=conversation.written if conversation.reply is None else conversation.reply,
            loaded_skills=tuple(loaded_skills),
            usage=conversation.read_usage(self.price),
            transcript=build_transcript(conversation.messages),
        )

    async def _send(self, conversation: AgentConversation, task: RunTask) -> None:
        """Send the prompt. Raises: SkillhallError, UsageLimitExceeded, SpendingLimitReached."""
        tools = FolderTools(task.folder, task.limits.max_output).tools()
        if self.allows_scripts:
            tools = (*tools, build_script_tool(task, conversation.tools))
        conversation.tools.extra_tools = tools
        conversation.tools.task = task.prompt
        message = conversation.tools.expand_message(task.prompt).text
        try:
            async with aclosing(conversation.send(message, task.limits.max_requests)) as requests:
                async for _ in requests:  # the runner counts the usage of a run that has ended
                    task.report_usage(conversation.read_usage(self.price))
        except UsageLimitExceeded:
            raise
        except (AgentRunError, UserError) as error:
            raise to_model_unavailable(error, self.model_name) from None

    def open_skills(self, task: RunTask) -> AgentSkills:
        """Return the skills for a task. Runs with the same skills read them only once."""
        shared = self._skills.get(task.skills)
        if shared is None:
            agent = AgentDefinition(
                "eval",
                skills=(InstructionSource(str(task.skills)),),
                instructions=INSTRUCTIONS,
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
