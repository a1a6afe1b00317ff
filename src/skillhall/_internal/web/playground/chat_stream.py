"""Streams a reply to the browser as NDJSON; without scripts, redirects when it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from skillhall._internal.agents.chat.events import (
    Done,
    FileRead,
    SkillLoaded,
    TextDelta,
    ToolFailed,
)
from skillhall._internal.http.response import encode_json
from skillhall._internal.http.streaming import run_until_disconnect
from skillhall._internal.web.rendering import CSP_HEADER, jinja_environment, redirect
from skillhall._internal.web.site import PageError, build_page_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from skillhall._internal.agents.chat.conversations import Turn
    from skillhall._internal.agents.chat.events import ChatEvent, ToolEvent
    from skillhall._internal.http.response import Headers
    from skillhall._internal.web.markdown_html import MarkdownRenderer
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import Site
    from skillhall._internal.web.translations import Translations

NDJSON_TYPE = b"application/x-ndjson"
_STREAM_HEADERS: Headers = (
    (b"content-type", NDJSON_TYPE),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    CSP_HEADER,
)


class TraceStep(NamedTuple):
    """Loaded skill, read file or failed tool call of a turn."""

    kind: str  # "loaded", "read" or "failed"
    subject: str
    detail: str

    @classmethod
    def from_event(cls, translations: Translations, event: ToolEvent) -> TraceStep:
        """Return the trace step of a tool event."""
        if isinstance(event, ToolFailed):
            return cls("failed", event.tool, event.message)
        tokens = translations("common.tokens", count=event.tokens)
        if isinstance(event, SkillLoaded):
            return cls("loaded", event.skill, tokens)
        return cls("read", "/".join(filter(None, (event.skill, event.path))), tokens)


class TurnRow(NamedTuple):
    """Turn of a conversation, rendered."""

    message: str
    steps: tuple[TraceStep, ...]
    reply: Markup
    done: Done | None
    problem: PageError | None

    @classmethod
    def from_turn(cls, request: PageRequest, turn: Turn, markdown: MarkdownRenderer) -> TurnRow:
        """Return the row of a turn; the reply is rendered as untrusted Markdown."""
        reply = markdown.render(turn.done.text, "#") if turn.done else Markup()
        problem = None
        if turn.error is not None:
            error = build_page_error(request, turn.error)
            heading = request.translations("playground.failed")
            problem = PageError(heading, error.message, error.hint)
        texts = request.translations
        steps = tuple(TraceStep.from_event(texts, event) for event in turn.tool_events)
        return cls(turn.message, steps, reply, turn.done, problem)


class PendingReply(NamedTuple):
    """Turn whose reply is not complete yet."""

    request: PageRequest
    turn: Turn
    events: AsyncIterator[ChatEvent]
    return_url: str  # page that shows the complete turn
    headers: Headers


class ChatStream(Response):
    """Response with the reply to a message; ends on disconnect or shutdown."""

    def __init__(
        self,
        site: Site,
        pending: PendingReply,
        wait_for_shutdown: Callable[[], Awaitable[None]],
        *,
        is_stream: bool,
    ) -> None:
        super().__init__()
        self._site = site
        self._pending = pending
        self._wait_for_shutdown = wait_for_shutdown
        self._is_stream = is_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send the events of the reply, or wait for its end and redirect."""
        if not self._is_stream:
            await run_until_disconnect(self._drain_events(), receive, self._wait_for_shutdown)
            await redirect(self._pending.return_url, self._pending.headers).send(send)
            return
        headers = [*_STREAM_HEADERS, *self._pending.headers]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await run_until_disconnect(self._send_events(send), receive, self._wait_for_shutdown)
        await send({"type": "http.response.body", "body": b""})

    async def _drain_events(self) -> None:
        async for _ in self._pending.events:
            pass

    async def _send_events(self, send: Send) -> None:
        async for event in self._pending.events:
            await _send_line(send, self._serialize_event(event))
        html = await self._site.workers.run(self._render_turn)
        failed = self._pending.turn.error is not None
        await _send_line(send, {"kind": "over", "html": html, "failed": failed})

    def _serialize_event(self, event: ChatEvent) -> dict[str, object]:
        if isinstance(event, TextDelta):
            return {"kind": "text", "text": event.text}
        if isinstance(event, SkillLoaded | FileRead | ToolFailed):
            texts = self._pending.request.translations
            step = TraceStep.from_event(texts, event)
            return {"kind": "step", "html": self._render_macro("trace_step", step)}
        return {"kind": "done"}

    def _render_turn(self) -> str:
        row = TurnRow.from_turn(self._pending.request, self._pending.turn, self._site.markdown)
        return self._render_macro("turn_article", row)

    def _render_macro(self, macro: str, value: TraceStep | TurnRow) -> str:
        module = jinja_environment().get_template("chat_turn.html").module
        return str(getattr(module, macro)(self._pending.request.translations, value))


async def _send_line(send: Send, message: dict[str, object]) -> None:
    body = encode_json(message) + b"\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})
