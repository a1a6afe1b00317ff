"""A conversation with an agent that uses skills, as a stream of events."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import (
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from skillhall._internal.agents.adapters.pydantic_ai import SkillsToolset, iter_texts
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.chat.events import Done, TextDelta
from skillhall._internal.agents.chat.models import open_model, to_model_unavailable
from skillhall.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from pydantic_ai.agent import AgentRunEvents
    from pydantic_ai.messages import AgentStreamEvent, ModelMessage

    from skillhall._internal.agents.agent_skills import AgentSkills, SkillSource
    from skillhall._internal.agents.chat.events import ChatEvent, ToolEvent

REQUEST_TIMEOUT = 120.0  # seconds for one request to the provider


class Chat:
    """One conversation with a model. Each message uses the current skills.

    >>> chat = Chat(Skills.load("skills"), "openai-chat:gpt-5")
    >>> chat.reset()
    """

    def __init__(self, skills: SkillSource, model: Model | str) -> None:
        self.skills: AgentSkills = skills.as_agent_skills()
        self.model: Model = open_model(model) if isinstance(model, str) else model
        self.model_name: str = model if isinstance(model, str) else model.model_name
        self._pending_events: deque[ToolEvent] = deque()
        self.tools: AgentTools = AgentTools(self.skills, self._pending_events.append)
        toolset = SkillsToolset(self.skills, self.tools)
        settings = ModelSettings(timeout=REQUEST_TIMEOUT)
        self._agent = Agent(self.model, toolsets=[toolset], model_settings=settings)
        self._history: list[ModelMessage] = []
        self._events: AgentRunEvents[str] | None = None  # of the last message
        # Limits what the model writes for one message: text, thoughts and arguments of tools.
        self.max_reply_length: int | None = None  # characters

    async def send(self, message: str) -> AsyncGenerator[ChatEvent]:
        """Send a message and yield events until the reply is complete; the last is `Done`.

        A message that fails does not change the conversation.
        Raises: ModelUnavailable, SkillNotFound, SkillRejected, TooLarge.
        """
        self._events = None
        if not self._history:
            # The skills for the first message stay in the prompt, which providers cache.
            self.tools.task = message
        self.tools.sync_history(iter_texts(self._history))
        expanded = self.tools.expand_message(message)
        while self._pending_events:
            yield self._pending_events.popleft()
        budgets = self.skills.agent.budgets
        limits = UsageLimits(total_tokens_limit=budgets.tokens)
        if budgets.requests is not None:  # otherwise the framework's own limit applies
            limits = replace(limits, request_limit=budgets.requests)
        try:
            async with (
                self.model,  # closes its connections after each message
                self._agent.run_stream_events(
                    expanded.text, message_history=self._history, usage_limits=limits
                ) as events,
            ):
                self._events = events
                async for chat_event in self._convert_events(events):
                    yield chat_event
        except (AgentRunError, UserError) as error:
            raise to_model_unavailable(error, self.model_name) from None

    @property
    def usage(self) -> RunUsage:
        """The usage of the last message so far, even if it failed."""
        with suppress(UserError):  # the first request was not sent
            if self._events is not None:
                return self._events.usage
        return RunUsage()

    @property
    def messages(self) -> list[ModelMessage]:
        """The messages so far, including those of the last message if it failed."""
        with suppress(UserError):
            if self._events is not None:
                return self._events.all_messages()
        return self._history

    def reset(self) -> None:
        """Start a new conversation."""
        self._history = []
        self._events = None
        self.tools.reset()

    async def _convert_events(self, events: AgentRunEvents[str]) -> AsyncIterator[ChatEvent]:
        length = 0
        async for event in events:
            length += count_written(event)
            if self.max_reply_length is not None and length > self.max_reply_length:
                raise TooLarge("reply", self.max_reply_length, "characters")
            while self._pending_events:
                yield self._pending_events.popleft()
            if isinstance(event, AgentRunResultEvent):
                self._history = event.result.all_messages()
                usage = event.result.usage
                yield Done(
                    text=event.result.output,
                    requests=usage.requests,
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                )
            elif text := read_text(event):
                yield TextDelta(text=text)


def read_text(event: AgentStreamEvent) -> str:
    """Return the text for the user that the model wrote in an event."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


def count_written(event: AgentStreamEvent | AgentRunResultEvent[str]) -> int:
    """Return the number of characters that the model wrote in an event."""
    written: object = None
    if isinstance(event, PartStartEvent):
        if isinstance(event.part, TextPart | ThinkingPart):
            written = event.part.content
        elif isinstance(event.part, ToolCallPart):
            written = event.part.args
    elif isinstance(event, PartDeltaEvent):
        if isinstance(event.delta, TextPartDelta | ThinkingPartDelta):
            written = event.delta.content_delta
        elif isinstance(event.delta, ToolCallPartDelta):
            written = event.delta.args_delta
    return len(written) if isinstance(written, str) else len(str(written or ""))
