"""The agent that is asked trigger queries, with the same listing and tools as real agents.

Pydantic AI is imported here, so commands load this module only when they need it.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic_ai import Agent
from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded, UserError
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from skillhall._internal.agents.adapters.pydantic_ai import SkillsToolset
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.chat.chat import REQUEST_TIMEOUT
from skillhall._internal.agents.chat.events import FileRead, SkillLoaded
from skillhall._internal.agents.chat.models import to_model_unavailable
from skillhall._internal.agents.file_tools import SkillFileResolver
from skillhall._internal.evals.eval_records import RunStatus, RunUsage
from skillhall._internal.evals.triggers.trigger_records import MAX_REQUESTS, TriggerReply
from skillhall._internal.skill.risks.secret_rules import redact_secrets

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRun

    from skillhall._internal.agents.chat.events import ToolEvent
    from skillhall._internal.evals.runs.run_limits import ModelPrice
    from skillhall._internal.evals.triggers.evaluated_skills import EvaluatedSkills

MAX_REPLY_LENGTH = 2000  # characters that are stored


@dataclass(frozen=True, slots=True)
class TriggerAgent:
    """An agent with fixed skills and a model. Runs may overlap."""

    skills: EvaluatedSkills
    model: Model
    model_name: str
    timeout: float  # seconds for one query
    price: ModelPrice | None = None  # if it is known

    async def ask(self, query: str) -> TriggerReply:
        """Ask the query, and stop when the agent has loaded a skill or replied.

        Raises: ModelUnavailable, if no query can be answered.
        """
        conversation = _Conversation(self.skills)
        tools = AgentTools(self.skills, conversation.note_event)
        tools.task = query
        agent = Agent(
            self.model,
            toolsets=[SkillsToolset(self.skills, tools)],
            model_settings=ModelSettings(timeout=min(self.timeout, REQUEST_TIMEOUT)),
        )
        started = time.monotonic()
        limits = UsageLimits(request_limit=MAX_REQUESTS)
        status, reason, reply, usage = RunStatus.COMPLETED, "", "", RunUsage()
        try:
            async with (
                asyncio.timeout(self.timeout),
                agent.iter(query, usage_limits=limits) as run,
            ):
                try:
                    async for _ in run:
                        if conversation.loaded:
                            break
                except UsageLimitExceeded:
                    reason = f"no skill loaded in {MAX_REQUESTS} requests"
                finally:
                    usage = _sum_usage(run, self.price, started)
                text = "" if run.result is None else run.result.output
                reply = redact_secrets(text)[:MAX_REPLY_LENGTH]
        except TimeoutError:
            status, reason = RunStatus.LIMITED, f"no reply in {self.timeout:g} seconds"
        except (AgentRunError, UserError) as error:
            unavailable = to_model_unavailable(error, self.model_name)
            if unavailable.code == "unauthenticated":
                raise unavailable from None
            status, reason = RunStatus.FAILED, str(unavailable)
        return TriggerReply(
            status=status,
            loaded_skills=tuple(dict.fromkeys(conversation.loaded)),
            reason=reason,
            reply=reply,
            usage=usage,
        )


@dataclass(slots=True)
class _Conversation:
    """The skills that a conversation has used."""

    skills: EvaluatedSkills
    loaded: list[str] = field(default_factory=list)

    def note_event(self, event: ToolEvent) -> None:
        """Record a skill that was loaded, or one of its files that was read."""
        if isinstance(event, SkillLoaded):
            self.loaded.append(event.skill)
        elif isinstance(event, FileRead):
            name = event.skill or self._find_skill(event.path)
            self.loaded += [name] if name else []

    def _find_skill(self, path: str) -> str:
        """Return the name of the skill that contains the file; "" if none does."""
        resolver = SkillFileResolver(self.skills.current_view(), self.skills.get_directory)
        file = resolver.find(path)
        return "" if file is None else file.skill_name


def _sum_usage(run: AgentRun[None, str], price: ModelPrice | None, started: float) -> RunUsage:
    usage = run.usage
    tokens = usage.input_tokens, usage.output_tokens
    return RunUsage(
        requests=usage.requests,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        duration_ms=round((time.monotonic() - started) * 1000),
        cost=None if price is None else price.cost_of(*tokens),
    )
