"""An answer on its way to a browser: line by line for scripts, as a whole page for others."""

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
from skillhall._internal.http.response import encoded
from skillhall._internal.http.streaming import while_wanted
from skillhall._internal.web.rendering import POLICY, environment, redirect
from skillhall._internal.web.site import Problem, problem_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from skillhall._internal.agents.chat.conversations import Turn
    from skillhall._internal.agents.chat.events import ChatEvent, ToolEvent
    from skillhall._internal.http.response import Headers
    from skillhall._internal.web.markdown_html import MarkdownPages
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Site
    from skillhall._internal.web.translations import Texts

STREAM = b"application/x-ndjson"
_HEADERS: Headers = (
    (b"content-type", STREAM),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    POLICY,
)


class Step(NamedTuple):
    """One line of the trace: of which kind, in words, and what it cost."""

    kind: str  # loaded, read or failed
    subject: str
    detail: str

    @classmethod
    def of(cls, texts: Texts, event: ToolEvent) -> Step:
        """The event as people read it."""
        if isinstance(event, ToolFailed):
            return cls("failed", event.tool, event.message)
        tokens = texts("write.tokens", count=event.tokens)
        if isinstance(event, SkillLoaded):
            return cls("loaded", event.skill, tokens)
        return cls("read", "/".join(filter(None, (event.skill, event.path))), tokens)


class TurnRow(NamedTuple):
    """A turn as the page shows it."""

    message: str
    steps: tuple[Step, ...]
    answer: Markup
    done: Done | None
    problem: Problem | None

    @classmethod
    def of(cls, visit: Visit, turn: Turn, markdown: MarkdownPages) -> TurnRow:
        """The turn in the visitor's words; the answer is the text of a stranger."""
        answer = markdown.render(turn.done.text, "#") if turn.done else Markup()
        problem = None
        if turn.failure is not None:
            told = problem_of(visit, turn.failure)
            problem = Problem(visit.texts("playground.failed"), told.message, told.hint)
        steps = tuple(Step.of(visit.texts, event) for event in turn.trace)
        return cls(turn.message, steps, answer, turn.done, problem)


class Talk(NamedTuple):
    """One turn on its way."""

    visit: Visit
    turn: Turn
    events: AsyncIterator[ChatEvent]
    place: str  # the page that shows it afterwards
    headers: Headers


class Talking(Response):
    """The answer to a message. It ends with its reader, or with the server."""

    def __init__(
        self,
        site: Site,
        talk: Talk,
        stopped: Callable[[], Awaitable[None]],
        *,
        is_stream: bool,
    ) -> None:
        super().__init__()
        self._site = site
        self._talk = talk
        self._stopped = stopped
        self._is_stream = is_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Tell what happens until it is over."""
        if not self._is_stream:
            await while_wanted(self._listen(), receive, self._stopped)
            await redirect(self._talk.place, self._talk.headers).send(send)
            return
        headers = [*_HEADERS, *self._talk.headers]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await while_wanted(self._tell(send), receive, self._stopped)
        await send({"type": "http.response.body", "body": b""})

    async def _listen(self) -> None:
        async for _ in self._talk.events:
            pass

    async def _tell(self, send: Send) -> None:
        async for event in self._talk.events:
            await _say(send, self._line(event))
        html = await self._site.blocking.run(self._whole)
        failed = self._talk.turn.failure is not None
        await _say(send, {"kind": "over", "html": html, "failed": failed})

    def _line(self, event: ChatEvent) -> dict[str, object]:
        if isinstance(event, TextDelta):
            return {"kind": "text", "text": event.text}
        if isinstance(event, SkillLoaded | FileRead | ToolFailed):
            texts = self._talk.visit.texts
            step = Step.of(texts, event)
            return {"kind": "step", "html": self._rendered("step", step)}
        return {"kind": "done"}

    def _whole(self) -> str:
        row = TurnRow.of(self._talk.visit, self._talk.turn, self._site.markdown)
        return self._rendered("turn", row)

    def _rendered(self, macro: str, value: Step | TurnRow) -> str:
        module = environment().get_template("talk.html").module
        return str(getattr(module, macro)(self._talk.visit.texts, value))


async def _say(send: Send, line: dict[str, object]) -> None:
    body = encoded(line) + b"\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})
