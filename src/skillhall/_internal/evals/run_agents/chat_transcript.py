"""Transcripts of conversations, in a form that does not depend on the provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai.messages import (
    ModelRequest,
    RetryPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic_ai.messages import ModelMessage

    from skillhall._internal.evals.run_agents.run_agent import Transcript


def build_transcript(messages: Iterable[ModelMessage]) -> Transcript:
    """Return the messages of a conversation, the system prompt first."""
    entries: Transcript = []
    for message in messages:
        if isinstance(message, ModelRequest):
            if message.instructions and not entries:
                entries.append({"role": "system", "content": message.instructions})
            entries += _iter_request_entries(message)
        else:
            entries.append(_build_reply_entry(message))
    return entries


def _iter_request_entries(message: ModelRequest) -> Iterator[dict[str, object]]:
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            content = part.content if isinstance(part.content, str) else str(part.content)
            yield {"role": "user", "content": content}
        elif isinstance(part, ToolReturnPart):
            content = part.model_response_str()
            yield {"role": "tool", "tool": part.tool_name, "content": content}
        elif isinstance(part, RetryPromptPart):
            content = part.model_response()
            yield {"role": "tool", "tool": part.tool_name or "", "content": content}


def _build_reply_entry(message: ModelMessage) -> dict[str, object]:
    texts = [part.content for part in message.parts if isinstance(part, TextPart)]
    thoughts = [part.content for part in message.parts if isinstance(part, ThinkingPart)]
    calls = [
        {"tool": part.tool_name, "arguments": part.args_as_dict()}
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    entry: dict[str, object] = {"role": "assistant", "content": "".join(texts)}
    if any(thoughts):
        entry["thinking"] = "".join(thoughts)
    if calls:
        entry["calls"] = calls
    return entry
