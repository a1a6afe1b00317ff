"""What all pages stand on: the services they ask, and how a visit becomes an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import Response

from skillhall._internal.hints import find_hint
from skillhall._internal.http.errors import error_status
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import HttpRequest
from skillhall._internal.http.response import Ready
from skillhall._internal.skill_store.pending_imports import PendingImports
from skillhall._internal.web.forms import PageForm, read_page_form
from skillhall._internal.web.markdown_html import MarkdownRenderer
from skillhall._internal.web.page_request import NOTICE_COOKIE, Notice, PageRequest
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from skillhall._internal.agents.collection_skills import CollectionSkills
    from skillhall._internal.http.credentials import Credentials
    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.prompts.prompt_model import PromptServiceProtocol
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill_store.collection import Collection
    from skillhall._internal.workspace.workspace import LazyWorkspace

    PageHandler: TypeAlias = Callable[[PageRequest], ByteResponse]

_UNROUTED_MESSAGES = {"not_found": "no_page", "method_not_allowed": "no_method"}
_NOTICE_LIFETIME = 60  # seconds in which a notice is seen or never


@dataclass(frozen=True, slots=True)
class PageError:
    """An error as a page tells it: a heading in the visitor's language, the facts, what to do."""

    heading: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class ErrorPage(Page):
    """A page that is not there, or that something kept from being made."""

    problem: PageError
    request_id: str


@dataclass(frozen=True, slots=True)
class Site:
    """The services, and what was made of their answers so far."""

    collection: Collection
    prompt_service: PromptServiceProtocol
    settings: Settings
    workers: WorkerPool
    credentials: Credentials
    pending_imports: PendingImports
    agent_skills: CollectionSkills  # the one that gets every skill of this server
    workspace: LazyWorkspace | None = None
    markdown: MarkdownRenderer = field(default_factory=MarkdownRenderer)

    def make_endpoint(self, handler: PageHandler) -> Callable[[Request], Awaitable[Response]]:
        """A call as a framework's route; it is made beside the event loop."""

        async def respond(request: Request) -> Response:
            exchange = HttpRequest(request.scope, request.receive)
            try:
                form = await read_page_form(exchange) if request.method == "POST" else PageForm()
            except HttpError as refusal:
                return Ready(
                    render_error_page(PageRequest.from_http(exchange, PageForm()), refusal)
                )
            visit = PageRequest.from_http(exchange, form)
            return Ready(await self.workers.run(_run_handler, handler, visit))

        respond.__name__ = getattr(handler, "__name__", "respond")
        return respond

    def redirect_with_notice(self, url: str, notice: Notice) -> ByteResponse:
        """To another page, which tells what was done."""
        cookie = self.credentials.build_cookie(NOTICE_COOKIE, notice.encode(), _NOTICE_LIFETIME)
        return redirect(url, ((b"set-cookie", cookie),))


def build_page_error(request: PageRequest, error: SkillhallError) -> PageError:
    """The error in words."""
    key = error.code if f"error.{error.code}" in request.translations.messages else "other"
    return PageError(request.translations(f"error.{key}"), str(error), _find_hint(request, error))


def _find_hint(request: PageRequest, error: SkillhallError) -> str:
    """The hint in the language of the page, if the language files have one."""
    key = "_".join(filter(None, (error.kind, error.variant)))
    if not error.hint and f"hint.{key}" in request.translations.messages:
        return request.translations(f"hint.{key}", **error.facts)
    return find_hint(error, {})


def render_error_page(request: PageRequest, error: SkillhallError) -> ByteResponse:
    """A page of its own for an error."""
    problem = build_page_error(request, error)
    page = ErrorPage(
        build_frame(request, problem.heading, ""), problem, request.http_request.request_id
    )
    headers = error.headers if isinstance(error, HttpError) else ()
    return render_page("error.html", page, status=error_status(error).http_status, headers=headers)


def render_unrouted_page(request: HttpRequest, error: HttpError) -> ByteResponse:
    """The page of a browser that asks for what no route answers, or for what has a bug."""
    visit = PageRequest.from_http(request, PageForm())
    message = visit.translations(f"error.{_UNROUTED_MESSAGES.get(error.code, 'broken')}")
    return render_error_page(visit, HttpError(error.code, message, headers=error.headers))


def _run_handler(handler: PageHandler, request: PageRequest) -> ByteResponse:
    try:
        return handler(request)
    except SkillhallError as error:
        return render_error_page(request, error)
    except OSError:
        return render_error_page(
            request, HttpError("storage_unavailable", "the server's disk failed")
        )
