"""Services shared by all pages, and the endpoint that runs a page handler."""

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
_NOTICE_LIFETIME = 60  # seconds; a notice is shown by the next page or not at all


@dataclass(frozen=True, slots=True)
class PageError:
    """Error shown on a page: translated heading, message and hint."""

    heading: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class ErrorPage(Page):
    """Page for a request that failed."""

    problem: PageError
    request_id: str


@dataclass(frozen=True, slots=True)
class Site:
    """Services behind the pages."""

    collection: Collection
    prompt_service: PromptServiceProtocol
    settings: Settings
    workers: WorkerPool
    credentials: Credentials
    pending_imports: PendingImports
    agent_skills: CollectionSkills  # the agent with every skill of this server
    workspace: LazyWorkspace | None = None
    markdown: MarkdownRenderer = field(default_factory=MarkdownRenderer)

    def make_endpoint(self, handler: PageHandler) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that runs the handler in a worker thread."""

        async def respond(request: Request) -> Response:
            http = HttpRequest(request.scope, request.receive)
            try:
                form = await read_page_form(http) if request.method == "POST" else PageForm()
            except HttpError as error:
                return Ready(render_error_page(PageRequest.from_http(http, PageForm()), error))
            page_request = PageRequest.from_http(http, form)
            return Ready(await self.workers.run(_run_handler, handler, page_request))

        respond.__name__ = getattr(handler, "__name__", "respond")
        return respond

    def redirect_with_notice(self, url: str, notice: Notice) -> ByteResponse:
        """Redirect to a page that shows the notice."""
        cookie = self.credentials.build_cookie(NOTICE_COOKIE, notice.encode(), _NOTICE_LIFETIME)
        return redirect(url, ((b"set-cookie", cookie),))


def build_page_error(request: PageRequest, error: SkillhallError) -> PageError:
    """Return the error with a heading in the visitor's language."""
    key = error.code if f"error.{error.code}" in request.translations.messages else "other"
    return PageError(request.translations(f"error.{key}"), str(error), _find_hint(request, error))


def _find_hint(request: PageRequest, error: SkillhallError) -> str:
    """The hint in the language of the page, if the language files have one."""
    key = "_".join(filter(None, (error.kind, error.variant)))
    if not error.hint and f"hint.{key}" in request.translations.messages:
        return request.translations(f"hint.{key}", **error.facts)
    return find_hint(error, {})


def optional_page_error(request: PageRequest, error: SkillhallError | None) -> PageError | None:
    """Return the error for a page; None without one."""
    return None if error is None else build_page_error(request, error)


def page_status(error: SkillhallError | None) -> int:
    """Return the HTTP status of a page that may show an error."""
    return 200 if error is None else error_status(error).http_status


def form_status(error: SkillhallError | None) -> int:
    """Return the HTTP status of a form that is shown again with its error."""
    return 200 if error is None else max(422, error_status(error).http_status)


def render_error_page(request: PageRequest, error: SkillhallError) -> ByteResponse:
    """Render an error as a page."""
    problem = build_page_error(request, error)
    frame = build_frame(request, problem.heading, "")
    page = ErrorPage(frame, problem, request.http_request.request_id)
    headers = error.headers if isinstance(error, HttpError) else ()
    return render_page("error.html", page, status=page_status(error), headers=headers)


def render_unrouted_page(request: HttpRequest, error: HttpError) -> ByteResponse:
    """Render the error of a request without a route, or of an unexpected exception."""
    page_request = PageRequest.from_http(request, PageForm())
    message = page_request.translations(f"error.{_UNROUTED_MESSAGES.get(error.code, 'broken')}")
    return render_error_page(page_request, HttpError(error.code, message, headers=error.headers))


def _run_handler(handler: PageHandler, request: PageRequest) -> ByteResponse:
    try:
        return handler(request)
    except SkillhallError as error:
        return render_error_page(request, error)
    except OSError:  # its message may name a path of the server
        failure = HttpError("storage_unavailable", "the server cannot access its storage")
        return render_error_page(request, failure)
