"""What all pages stand on: the services they ask, and how a visit becomes an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import Response

from skillhall._internal.http.errors import status_of
from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.request import Exchange
from skillhall._internal.http.response import Ready
from skillhall._internal.skill_store.pending_imports import Reviews
from skillhall._internal.web.forms import Form, read_form
from skillhall._internal.web.markdown_html import MarkdownPages
from skillhall._internal.web.page_request import NOTICE, Notice, Visit
from skillhall._internal.web.rendering import Page, frame_of, page_answer, redirect
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from skillhall._internal.agents.collection_skills import CollectionSkills
    from skillhall._internal.http.credentials import Keys
    from skillhall._internal.http.response import Answer
    from skillhall._internal.http.thread_pool import Blocking
    from skillhall._internal.prompts.prompt_model import Counter
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill_store.collection import Collection
    from skillhall._internal.workspace.workspace import Door

    Call: TypeAlias = Callable[[Visit], Answer]

_UNROUTED = {"not_found": "no_page", "method_not_allowed": "no_method"}
_SOON = 60  # seconds in which a notice is seen or never


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a page tells it: a heading in the visitor's language, the facts, what to do."""

    heading: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class ErrorPage(Page):
    """A page that is not there, or that something kept from being made."""

    problem: Problem
    request_id: str


@dataclass(frozen=True, slots=True)
class Site:
    """The services, and what was made of their answers so far."""

    collection: Collection
    counter: Counter
    settings: Settings
    blocking: Blocking
    keys: Keys
    reviews: Reviews
    agent: CollectionSkills  # the one that gets every skill of this server
    workspace: Door | None = None
    markdown: MarkdownPages = field(default_factory=MarkdownPages)

    def endpoint(self, call: Call) -> Callable[[Request], Awaitable[Response]]:
        """A call as a framework's route; it is made beside the event loop."""

        async def respond(request: Request) -> Response:
            exchange = Exchange(request.scope, request.receive)
            try:
                form = await read_form(exchange) if request.method == "POST" else Form()
            except Refused as refusal:
                return Ready(error_page(Visit.of(exchange, Form()), refusal))
            visit = Visit.of(exchange, form)
            return Ready(await self.blocking.run(_answered, call, visit))

        respond.__name__ = getattr(call, "__name__", "respond")
        return respond

    def done(self, place: str, notice: Notice) -> Answer:
        """To another page, which tells what was done."""
        cookie = self.keys.cookie(NOTICE, notice.encoded(), _SOON)
        return redirect(place, ((b"set-cookie", cookie),))


def problem_of(visit: Visit, error: SkillhallError) -> Problem:
    """The error in words."""
    key = error.code if f"error.{error.code}" in visit.texts.words else "other"
    hint = error.hint.replace("'skillhall validate' explains each finding", "")
    return Problem(visit.texts(f"error.{key}"), str(error), hint)


def error_page(visit: Visit, error: SkillhallError) -> Answer:
    """A page of its own for an error."""
    problem = problem_of(visit, error)
    page = ErrorPage(frame_of(visit, problem.heading, ""), problem, visit.exchange.request_id)
    headers = error.headers if isinstance(error, Refused) else ()
    return page_answer("error.html", page, status=status_of(error).http, headers=headers)


def unrouted_page(exchange: Exchange, refusal: Refused) -> Answer:
    """The page of a browser that asks for what no route answers, or for what has a bug."""
    visit = Visit.of(exchange, Form())
    message = visit.texts(f"error.{_UNROUTED.get(refusal.code, 'broken')}")
    return error_page(visit, Refused(refusal.code, message, headers=refusal.headers))


def _answered(call: Call, visit: Visit) -> Answer:
    try:
        return call(visit)
    except SkillhallError as error:
        return error_page(visit, error)
    except OSError:
        return error_page(visit, Refused("storage_unavailable", "the server's disk failed"))
