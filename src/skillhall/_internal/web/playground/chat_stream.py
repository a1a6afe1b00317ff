"""Streams a reply as NDJSON; without scripts, redirects once it is complete."""

from collections.abc import AsyncIterator
from typing import NamedTuple, Self

from markupsafe import Markup
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from skillhall._internal.agents.chat.conversations import Turn
from skillhall._internal.agents.chat.events import (
    ChatEvent,
    Done,
    SkillLoaded,
    TextDelta,
    ToolEvent,
    ToolFailed,
)
from skillhall._internal.http.response import encode_json
from skillhall._internal.http.streaming import run_until_disconnect
from skillhall._internal.http.thread_pool import Work
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.web.page_request import PageRequest
from skillhall._internal.web.rendering import (
    CSP_HEADER,
    PageError,
    describe_error,
    render_macro,
)
from skillhall._internal.web.translations import Translations

PLAYGROUND_PATH = "/playground"
NDJSON_TYPE = "application/x-ndjson"
_STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no", **CSP_HEADER}


def is_stream(request: PageRequest) -> bool:
    """Whether the browser requests the reply as a stream."""
    return request.headers.get("accept") == NDJSON_TYPE


class TraceStep(NamedTuple):
    """Loaded skill, read file or failed tool call of a turn."""

    kind: str  # "loaded", "read" or "failed"
    subject: str
    detail: str

    @classmethod
    def from_event(cls, translations: Translations, event: ToolEvent) -> Self:
        """Return the trace step of a tool event."""
        if isinstance(event, ToolFailed):
            return cls("failed", event.tool, event.message)
        tokens = translations("common.tokens", count=event.tokens)
        if isinstance(event, SkillLoaded):
            return cls("loaded", event.skill, tokens)
        return cls("read", "/".join(filter(None, (event.skill, event.path))), tokens)


class TurnRow(NamedTuple):
    """Rendered turn of a conversation."""

    message: str
    steps: tuple[TraceStep, ...]
    reply: Markup
    done: Done | None
    problem: PageError | None
    is_stopped: bool = False
    eval_url: str = ""  # saves it as an eval case; "" if that is not allowed

    @classmethod
    def from_turn(cls, request: PageRequest, turn: Turn, number: int) -> Self:
        """Return the row of a turn; the reply is rendered as untrusted Markdown."""
        text = turn.done.text if turn.done else turn.partial_text
        reply = request.site.markdown.render(text, "#") if text else Markup()
        translations, problem = request.translations, None
        if turn.error is not None:
            heading = translations("playground.failed")
            problem = describe_error(request, turn.error)._replace(heading=heading)
        steps = tuple(TraceStep.from_event(translations, event) for event in turn.tool_events)
        can_save = turn.done is not None and request.may(Action.WRITE_SKILLS)
        url = f"{PLAYGROUND_PATH}/eval-case?turn={number}" if can_save else ""
        return cls(turn.message, steps, reply, turn.done, problem, turn.is_stopped, url)


class ChatStream(Response):
    """Response with the reply to a message; ends on disconnect or shutdown."""

    def __init__(
        self,
        request: PageRequest,
        turn: Turn,
        number: int,  # of the turn
        events: AsyncIterator[ChatEvent],
    ) -> None:
        self._is_stream = is_stream(request)
        if self._is_stream:
            super().__init__(headers=_STREAM_HEADERS, media_type=NDJSON_TYPE)
            del self.headers["content-length"]
        else:
            super().__init__(status_code=303, headers={"location": PLAYGROUND_PATH})
        self._request, self._turn, self._number = request, turn, number
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events of the reply, or wait for its end and redirect."""
        wait_for_shutdown = self._request.site.wait_for_shutdown
        if not self._is_stream:
            await run_until_disconnect(self._drain_events(), receive, wait_for_shutdown)
            await super().__call__(scope, receive, send)
            return
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await run_until_disconnect(self._send_events(send), receive, wait_for_shutdown)
        await send({"type": "http.response.body", "body": b""})

    async def _drain_events(self) -> None:
        async for _ in self._events:
            pass

    async def _send_events(self, send: Send) -> None:
        async for event in self._events:
            if isinstance(event, TextDelta):
                await _send_line(send, {"kind": "text", "text": event.text})
            elif isinstance(event, Done):
                await _send_line(send, {"kind": "done"})
            else:
                step = TraceStep.from_event(self._request.translations, event)
                html = self._render_macro("trace_step", step)
                await _send_line(send, {"kind": "step", "html": html})
        html = await self._request.site.pools[Work.DISK].run(self._render_turn)
        failed = self._turn.error is not None
        await _send_line(send, {"kind": "over", "html": html, "failed": failed})

    def _render_turn(self) -> str:
        return self._render_macro("turn_article", self._build_row())

    def _build_row(self) -> TurnRow:
        return TurnRow.from_turn(self._request, self._turn, self._number)

    def _render_macro(self, macro: str, value: TraceStep | TurnRow) -> str:
        return render_macro("chat_turn.html", macro, self._request.translations, value)


async def _send_line(send: Send, message: dict[str, object]) -> None:
    body = encode_json(message) + b"\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})
