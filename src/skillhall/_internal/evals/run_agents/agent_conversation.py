"""A conversation of the built-in agent: one message and the requests for a reply.

Pydantic AI is imported here, so commands load this module only when they need it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from skillhall._internal.agents.adapters.pydantic_ai import SkillsToolset
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.chat.chat import REQUEST_TIMEOUT, count_written, read_text
from skillhall._internal.evals.eval_records import RunUsage
from skillhall.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.run import AgentRun
    from pydantic_ai.usage import RunUsage as ModelUsage

    from skillhall._internal.agents.agent_skills import AgentSkills
    from skillhall._internal.agents.chat.events import ToolEvent
    from skillhall._internal.evals.runs.run_limits import ModelPrice

_MAX_PARTIAL_REPLY = 64 * 1024  # characters stored of a reply that did not end


class AgentConversation:
    """One conversation of an agent with skills and tools, for one message."""

    def __init__(
        self,
        skills: AgentSkills,
        model: Model,
        on_event: Callable[[ToolEvent], None],
        max_length: int | None = None,
    ) -> None:
        """Prepare a conversation; the model writes at most `max_length` characters."""
        self.tools = AgentTools(skills, on_event)
        self._skills = skills
        self._model = _BoundedModel(model, max_length)
        self._run: AgentRun[None, str] | None = None
        self._started = time.monotonic()

    async def send(
        self, message: str, max_requests: int, request_timeout: float = REQUEST_TIMEOUT
    ) -> AsyncGenerator[None]:
        """Send the message, and yield before each request.

        Raises: AgentRunError, UserError, TooLarge.
        """
        agent = Agent(
            self._model,
            toolsets=[SkillsToolset(self._skills, self.tools)],
            model_settings=ModelSettings(timeout=min(request_timeout, REQUEST_TIMEOUT)),
        )
        limits = UsageLimits(request_limit=max_requests)
        async with agent.iter(message, usage_limits=limits) as run:
            self._run = run
            async for node in run:
                if Agent.is_model_request_node(node):
                    yield

    @property
    def reply(self) -> str | None:
        """The reply; `None` if the conversation has not ended."""
        result = None if self._run is None else self._run.result
        return None if result is None else result.output

    @property
    def written(self) -> str:
        """The start of what the model has written for the user so far."""
        return self._model.written

    @property
    def messages(self) -> list[ModelMessage]:
        """The messages so far."""
        return [] if self._run is None else self._run.all_messages()

    def read_usage(self, price: ModelPrice | None) -> RunUsage:
        """Return the usage so far."""
        if self._run is None:
            return RunUsage()
        return build_usage(self._run.usage, price, self._started)


class _BoundedModel(WrapperModel):
    """A model that writes at most `max_length` characters.

    It reads the stream of a reply here, since an agent that streams takes twice the CPU time.
    """

    def __init__(self, wrapped: Model, max_length: int | None) -> None:
        super().__init__(wrapped)
        self.written = ""  # the text so far, not more than `_MAX_PARTIAL_REPLY`
        self._max_length = max_length
        self._length = 0

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        try:
            async with self.wrapped.request_stream(
                messages, model_settings, model_request_parameters
            ) as response:
                async for event in response:
                    self._note_event(event)
                return response.get()
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # The clients of providers do not check the values in a reply.
            raise UnexpectedModelBehavior("unusable reply") from error

    def _note_event(self, event: ModelResponseStreamEvent) -> None:
        self._length += count_written(event)
        if self._max_length is not None and self._length > self._max_length:
            raise TooLarge("reply", self._max_length, "characters")
        if len(self.written) < _MAX_PARTIAL_REPLY:
            self.written += read_text(event)


def build_usage(usage: ModelUsage, price: ModelPrice | None, started: float) -> RunUsage:
    """Return usage as counted by the provider.

    `started` is a time of the monotonic clock.
    """
    tokens = usage.input_tokens, usage.output_tokens
    return RunUsage(
        requests=usage.requests,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        duration_ms=round((time.monotonic() - started) * 1000),
        cost=None if price is None else price.cost_of(*tokens),
    )
