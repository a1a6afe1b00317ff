"""The agent that answers trigger queries; its listing and tools are the real ones.

Pydantic AI is imported here, so commands load this module only when they need it.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded, UserError

from skillhall._internal.agents.chat.events import FileRead, SkillLoaded
from skillhall._internal.agents.chat.models import to_model_unavailable
from skillhall._internal.agents.file_tools import SkillFileResolver
from skillhall._internal.evals.eval_records import RunStatus
from skillhall._internal.evals.run_agents.agent_conversation import AgentConversation
from skillhall._internal.evals.triggers.trigger_records import MAX_REQUESTS, TriggerReply
from skillhall._internal.skill.risks.secret_rules import redact_secrets
from skillhall.errors import TooLarge

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from skillhall._internal.agents.chat.events import ToolEvent
    from skillhall._internal.evals.runs.run_limits import ModelPrice
    from skillhall._internal.evals.triggers.evaluated_skills import EvaluatedSkills

MAX_REPLY_LENGTH = 2000  # characters of a reply that are stored
_MAX_WRITTEN = 200_000  # characters; an agent that writes more has not loaded the skill


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
        used = _UsedSkills(self.skills)
        conversation = AgentConversation(self.skills, self.model, used.note_event, _MAX_WRITTEN)
        conversation.tools.task = query
        status, reason = RunStatus.COMPLETED, ""
        try:
            async with (
                asyncio.timeout(self.timeout),
                aclosing(conversation.send(query, MAX_REQUESTS, self.timeout)) as requests,
            ):
                async for _ in requests:
                    if used.names:
                        break
        except TimeoutError:
            status, reason = RunStatus.LIMITED, f"no reply in {self.timeout:g} seconds"
        except UsageLimitExceeded:
            reason = f"no skill loaded in {MAX_REQUESTS} requests"
        except TooLarge:
            reason = f"no skill loaded in {_MAX_WRITTEN} characters"
        except (AgentRunError, UserError) as error:
            unavailable = to_model_unavailable(error, self.model_name)
            if unavailable.code == "unauthenticated":
                raise unavailable from None
            status, reason = RunStatus.FAILED, str(unavailable)
        return TriggerReply(
            status=status,
            loaded_skills=tuple(dict.fromkeys(used.names)),
            reason=reason,
            reply=redact_secrets(conversation.reply or conversation.written)[:MAX_REPLY_LENGTH],
            usage=conversation.read_usage(self.price),
        )


@dataclass(slots=True)
class _UsedSkills:
    """The skills that a conversation has used."""

    skills: EvaluatedSkills
    names: list[str] = field(default_factory=list)

    def note_event(self, event: ToolEvent) -> None:
        """Record a skill that was loaded, or one of its files that was read."""
        if isinstance(event, SkillLoaded):
            self.names.append(event.skill)
        elif isinstance(event, FileRead):
            name = event.skill or self._find_skill(event.path)
            self.names += [name] if name else []

    def _find_skill(self, path: str) -> str:
        """Return the name of the skill that contains the file; "" if none does."""
        resolver = SkillFileResolver(self.skills.current_view(), self.skills.get_directory)
        file = resolver.find(path)
        return "" if file is None else file.skill_name
