"""One request to a model for a text, without skills or tools.

Pydantic AI is imported here, so commands load this module only when they need it.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pydantic_ai import Agent
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.settings import ModelSettings

from skillhall._internal.agents.chat.chat import REQUEST_TIMEOUT
from skillhall._internal.agents.chat.models import open_model, to_model_unavailable
from skillhall._internal.evals.run_agents.agent_conversation import build_usage
from skillhall._internal.evals.runs.model_prices import find_price
from skillhall.errors import ModelUnavailable

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from skillhall._internal.evals.eval_records import RunUsage
    from skillhall._internal.evals.runs.run_limits import ModelPrice

MAX_REPLY_LENGTH = 200_000  # characters


class TextReply(NamedTuple):
    """The reply to one request; `text` is cut off after `MAX_REPLY_LENGTH`."""

    text: str
    usage: RunUsage


@dataclass(frozen=True, slots=True)
class TextModel:
    """A model that writes texts."""

    model: Model
    name: str
    price: ModelPrice | None = None
    timeout: float = REQUEST_TIMEOUT  # seconds for one request

    @classmethod
    def open(cls, name: str) -> TextModel:
        """Open the model `provider:name`. Raises: ModelUnavailable."""
        return cls(open_model(name), name, find_price(name))

    async def write(self, instructions: str, request: str) -> str:
        """Return the text of the reply to a request. Raises: ModelUnavailable."""
        return (await self.ask(instructions, request)).text

    async def ask(self, instructions: str, request: str) -> TextReply:
        """Return the reply to a request. Raises: ModelUnavailable."""
        settings = ModelSettings(timeout=self.timeout)
        agent = Agent(self.model, instructions=instructions, model_settings=settings)
        text, started = "", time.monotonic()
        try:
            async with (
                asyncio.timeout(self.timeout),
                self.model,  # closes its connections, unless the caller has entered it, too
                agent.run_stream(request) as result,
            ):
                async for delta in result.stream_text(delta=True, debounce_by=None):
                    text += delta
                    if len(text) > MAX_REPLY_LENGTH:
                        break
                usage = build_usage(result.usage, self.price, started)
                return TextReply(text[:MAX_REPLY_LENGTH], usage)
        except TimeoutError:
            raise ModelUnavailable(self.name, "the provider timed out", "try again") from None
        except (AgentRunError, UserError) as error:
            raise to_model_unavailable(error, self.name) from None
