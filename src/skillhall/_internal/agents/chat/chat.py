"""The chat: a conversation with an agent that uses skills, as events that come while it answers."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from skillhall._internal.agents.adapters.pydantic_ai import SkillsToolset, texts_of
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.chat.events import Done, TextDelta
from skillhall._internal.agents.chat.models import failure_of, open_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from pydantic_ai.agent import AgentRunEvents
    from pydantic_ai.messages import AgentStreamEvent, ModelMessage

    from skillhall._internal.agents.agent_skills import AgentSkills
    from skillhall._internal.agents.chat.events import ChatEvent, ToolEvent
    from skillhall._internal.agents.config.agent_config import Budgets

SILENCE = 120.0  # seconds that a provider may take for one request


class Chat:
    """One conversation. Each message sees the skills as they are when it is sent."""

    def __init__(self, skills: AgentSkills, model: Model | str) -> None:
        self.skills = skills
        self.model = open_model(model) if isinstance(model, str) else model
        self.name = model if isinstance(model, str) else model.model_name
        self.tools = AgentTools(skills, self._notice)
        self._noticed: deque[ToolEvent] = deque()
        toolset = SkillsToolset(skills, self.tools)
        settings = ModelSettings(timeout=SILENCE)
        self._agent = Agent(self.model, toolsets=[toolset], model_settings=settings)
        self._history: list[ModelMessage] = []

    async def send(self, message: str) -> AsyncIterator[ChatEvent]:
        """What happens until the answer is whole; the last event is `Done`.

        A message that fails leaves the conversation as it was before.
        Raises: ModelUnavailable, SkillNotFound, SkillRejected.
        """
        self.tools.recall(texts_of(self._history))
        said = self.tools.said(message)
        for event in self._drained():
            yield event
        limits = _limits(self.skills.agent.budgets)
        try:
            async with (
                self.model,  # whose connections are closed after each message
                self._agent.run_stream_events(
                    said.text, message_history=self._history, usage_limits=limits
                ) as events,
            ):
                async for chat_event in self._events(events):
                    yield chat_event
        except (AgentRunError, UserError) as error:
            raise failure_of(error, self.name) from None

    def reset(self) -> None:
        """Start anew."""
        self._history = []
        self.tools.reset()

    async def _events(self, events: AgentRunEvents[str]) -> AsyncIterator[ChatEvent]:
        async for event in events:
            for noticed in self._drained():
                yield noticed
            if isinstance(event, AgentRunResultEvent):
                self._history = event.result.all_messages()
                usage = event.result.usage
                counts = usage.requests, usage.input_tokens, usage.output_tokens
                yield Done(event.result.output, *counts)
            elif text := _text_of(event):
                yield TextDelta(text)

    def _notice(self, event: ToolEvent) -> None:
        self._noticed.append(event)

    def _drained(self) -> Iterator[ToolEvent]:
        while self._noticed:
            yield self._noticed.popleft()


def _text_of(event: AgentStreamEvent) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


def _limits(budgets: Budgets) -> UsageLimits:
    if budgets.requests is None:
        return UsageLimits(total_tokens_limit=budgets.tokens)
    return UsageLimits(request_limit=budgets.requests, total_tokens_limit=budgets.tokens)
