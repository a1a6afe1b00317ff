"""Services shared by all pages, and the routes that run page handlers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.routing import Route

from skillhall._internal.agents.collection_skills import CollectionSkills
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import ROUTE_KEY
from skillhall._internal.skill_store.pending_imports import PendingImports
from skillhall._internal.web.markdown_html import MarkdownRenderer
from skillhall._internal.web.page_request import NOTICE_COOKIE, Notice, PageRequest
from skillhall._internal.web.rendering import redirect, render_error
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from starlette.requests import Request
    from starlette.responses import Response

    from skillhall._internal.http.credentials import Credentials
    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.prompts.service import PromptService
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill_store.collection import Collection
    from skillhall._internal.workspace.workspace import LazyWorkspace, Workspace

    PageHandler: TypeAlias = Callable[[PageRequest], Response]

_UNROUTED_MESSAGES = {"not_found": "no_page", "method_not_allowed": "no_method"}
_NOTICE_LIFETIME = 60  # seconds; a notice is shown by the next page or not at all


@dataclass
class Site:
    """Services behind the pages."""

    collection: Collection
    prompt_service: PromptService
    settings: Settings
    workers: WorkerPool
    credentials: Credentials
    wait_for_shutdown: Callable[[], Awaitable[None]]  # returns when the server shuts down
    workspace: LazyWorkspace | None = None

    def __post_init__(self) -> None:
        self.pending_imports = PendingImports(self.collection.changes, self.collection.system_ids)
        self.agent_skills = CollectionSkills(self.collection)  # of an agent with every skill
        self.markdown = MarkdownRenderer()

    def route(self, method: str, path: str, handler: PageHandler) -> Route:
        """Return a route to a handler, which runs in a worker thread."""
        label = path.replace(":path}", "}")

        async def respond(request: Request) -> Response:
            request.scope[ROUTE_KEY] = label  # for metrics
            page_request = PageRequest(request.scope, request.receive)
            try:
                if method == "POST":
                    await page_request.read_form()
                return await self.workers.run(handler, page_request)
            except SkillhallError as error:
                return render_error(page_request, error)
            except OSError:  # its message may name a path of the server
                failure = HttpError("storage_unavailable", "the server cannot access its storage")
                return render_error(page_request, failure)

        return Route(path, respond, methods=[method], include_in_schema=False)

    def add_cookie(self, response: Response, name: str, value: str, seconds: int) -> None:
        """Set a cookie; 0 seconds deletes it."""
        cookie = self.credentials.build_cookie(name, value, seconds)
        response.headers.append("set-cookie", cookie.decode("ascii"))

    def redirect(self, url: str, notice: str, subject: str, undo_ref: str = "") -> Response:
        """Redirect to a page that shows a notice."""
        response = redirect(url)
        text = Notice(notice, subject, undo_ref).encode()
        self.add_cookie(response, NOTICE_COOKIE, text, _NOTICE_LIFETIME)
        return response


class PageHandlers:
    """Base class of the page handlers."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._collection = site.collection

    @property
    def _workspace(self) -> Workspace:
        """The workspace. Raises: HttpError, DatabaseUnavailable."""
        if self._site.workspace is None:
            raise HttpError("not_found", "this server has no sessions")
        return self._site.workspace.open()


def render_unrouted_page(request: Request, error: HttpError) -> Response:
    """Render the error of a request without a route, or of an unexpected exception."""
    page_request = PageRequest(request.scope, request.receive)
    message = page_request.translations(f"error.{_UNROUTED_MESSAGES.get(error.code, 'broken')}")
    return render_error(page_request, HttpError(error.code, message, headers=error.headers))
