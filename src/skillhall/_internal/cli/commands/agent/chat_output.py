"""Output of a chat: lines for users, JSON for scripts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from skillhall._internal.agents.chat.events import (
    Done,
    FileRead,
    SkillLoaded,
    TextDelta,
    ToolFailed,
)
from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.terminal import print_message, print_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.agents.chat.chat import Chat
    from skillhall._internal.agents.chat.events import ChatEvent


def print_event(event: ChatEvent) -> None:
    """Print an event: the reply to stdout, everything else to stderr."""
    if isinstance(event, TextDelta):
        print_text(event.text)
    elif isinstance(event, Done):
        print_text("\n")
        sys.stdout.flush()
        requests = format_count(event.requests, "request")
        print_message(f"· {requests}, {event.input_tokens} tokens in, {event.output_tokens} out")
    else:
        print_message(f"· {_describe_event(event)}")
    sys.stdout.flush()


def _describe_event(event: SkillLoaded | FileRead | ToolFailed) -> str:
    if isinstance(event, SkillLoaded):
        return f"loaded {event.skill} ({format_count(event.tokens, 'token')})"
    if isinstance(event, FileRead):
        path = f"{event.skill}/{event.path}" if event.skill else event.path
        return f"read {path} ({format_count(event.tokens, 'token')})"
    return f"{event.tool} failed: {event.message}"


def print_chat_json(chat: Chat, events: Sequence[ChatEvent]) -> None:
    """Print the reply and its events as JSON."""
    done = events[-1]
    data: dict[str, object] = {
        "agent": chat.skills.agent.id,
        "events": [*_serialize_events(events)],
    }
    if isinstance(done, Done):
        counts = done.requests, done.input_tokens, done.output_tokens
        usage = dict(zip(("requests", "inputTokens", "outputTokens"), counts, strict=True))
        data |= {"answer": done.text, "usage": usage}
    print_json_report("chat", data, chat.skills.findings)


def _serialize_events(events: Sequence[ChatEvent]) -> Iterator[dict[str, object]]:
    for event in events:
        if isinstance(event, SkillLoaded):
            by = "person" if event.by_user else "model"
            yield {"event": "loaded", "skill": event.skill, "tokens": event.tokens, "by": by}
        elif isinstance(event, FileRead):
            where = {"skill": event.skill} if event.skill else {}
            yield {"event": "read", **where, "path": event.path, "tokens": event.tokens}
        elif isinstance(event, ToolFailed):
            yield {"event": "failed", "tool": event.tool, "message": event.message}
