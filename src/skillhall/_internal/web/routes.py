"""The addresses of the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

from skillhall._internal.agents.collection_skills import CollectionSkills
from skillhall._internal.http.auth_middleware import SIGN_IN_PATH
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import ROUTE_KEY
from skillhall._internal.http.response import ByteResponse
from skillhall._internal.skill_store.pending_imports import PendingImports
from skillhall._internal.web.assets import STATIC_PREFIX, load_assets
from skillhall._internal.web.playground.playground_pages import PLAYGROUND_PATH, PlaygroundPages
from skillhall._internal.web.rendering import redirect
from skillhall._internal.web.sessions.routes import session_page_routes
from skillhall._internal.web.site import Site
from skillhall._internal.web.skills.edit_pages import SkillEditPages
from skillhall._internal.web.skills.import_pages import ImportPages
from skillhall._internal.web.skills.skill_pages import SkillPages
from skillhall._internal.web.source_pages import SourcePages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from starlette.requests import Request
    from starlette.responses import Response

    from skillhall._internal.http.credentials import Credentials
    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.prompts.prompt_model import PromptServiceProtocol
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill_store.collection import Collection
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import PageHandler
    from skillhall._internal.workspace.workspace import LazyWorkspace

    RouteEndpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_IMMUTABLE_HEADER = (b"cache-control", b"public, max-age=31536000, immutable")
_NO_CACHE_HEADER = (b"cache-control", b"no-cache")


def build_web_router(  # noqa: PLR0913, PLR0917 - the services of the pages
    collection: Collection,
    prompt_service: PromptServiceProtocol,
    settings: Settings,
    workers: WorkerPool,
    credentials: Credentials,
    wait_for_shutdown: Callable[[], Awaitable[None]],
    workspace: LazyWorkspace | None = None,
) -> APIRouter:
    """Every page; the OpenAPI document is about programs, and names none of them.

    `stopped` ends when the server is about to stop.
    """
    reviews = PendingImports(collection.changes, collection.system_ids)
    agent = CollectionSkills(collection)
    site = Site(
        collection, prompt_service, settings, workers, credentials, reviews, agent, workspace
    )
    router = APIRouter()
    playground = PlaygroundPages(site, wait_for_shutdown)
    endpoints = [(*row[:2], site.make_endpoint(row[2])) for row in _page_routes(site, playground)]
    for method, path, respond in (
        *endpoints,
        ("POST", f"{PLAYGROUND_PATH}/say", playground.send_message),
    ):
        # Not as the framework's own routes: it would look in each for what a document says of it.
        router.add_route(
            path, _with_route_label(path, respond), methods=[method], include_in_schema=False
        )
    return router


def _with_route_label(path: str, endpoint: RouteEndpoint) -> RouteEndpoint:
    """The same, under the name by which requests are counted."""

    async def counted(request: Request) -> Response:
        request.scope[ROUTE_KEY] = path.replace(":path}", "}")
        return await endpoint(request)

    return counted


def _page_routes(
    site: Site, playground: PlaygroundPages
) -> tuple[tuple[str, str, PageHandler], ...]:
    skills, shaping = SkillPages(site), SkillEditPages(site)
    imports, sources = ImportPages(site), SourcePages(site)
    return (
        ("GET", "/", _redirect_home),
        ("GET", f"{STATIC_PREFIX}{{path:path}}", _serve_asset),
        ("GET", "/skills", skills.list_skills),
        ("GET", "/skills/news", skills.check_for_changes),
        ("GET", "/skills/add", shaping.show_new),
        ("POST", "/skills/add", shaping.add),
        ("POST", "/skills/add/check", shaping.check_new),
        ("GET", "/skills/import", imports.show_form),
        ("POST", "/skills/import/files", imports.review_files),
        ("POST", "/skills/import/address", imports.review_source),
        ("POST", "/skills/import/folder", imports.review_folder),
        ("GET", "/skills/import/{review}", imports.show_review),
        ("POST", "/skills/import/{review}", imports.confirm),
        ("GET", "/skill/{id}", skills.show_skill),
        ("GET", "/skill/{id}/files", skills.list_files),
        ("GET", "/skill/{id}/files/{path:path}", skills.show_file),
        ("GET", "/skill/{id}/edit", shaping.show_edit),
        ("POST", "/skill/{id}/edit", shaping.edit),
        ("POST", "/skill/{id}/edit/check", shaping.check_edit),
        ("GET", "/skill/{id}/delete", shaping.confirm_delete),
        ("POST", "/skill/{id}/delete", shaping.delete),
        ("POST", "/changes/{id}/undo", shaping.undo),
        ("GET", PLAYGROUND_PATH, playground.show),
        ("GET", f"{PLAYGROUND_PATH}/prompt", playground.show_prompt),
        ("POST", f"{PLAYGROUND_PATH}/new", playground.start_over),
        *session_page_routes(site),
        ("GET", "/sources", sources.show_sources),
        ("GET", "/sources/skipped", sources.show_skipped),
        ("POST", "/sources/refresh", sources.refresh),
        ("POST", "/sources/follow", sources.follow),
        ("POST", "/sources/unfollow", sources.unfollow),
        ("POST", "/settings", sources.save_preferences),
        ("GET", SIGN_IN_PATH, sources.show_sign_in),
        ("POST", SIGN_IN_PATH, sources.sign_in),
        ("POST", "/sign-out", sources.sign_out),
    )


def _redirect_home(request: PageRequest) -> ByteResponse:  # noqa: ARG001 - a call's signature
    """The first page."""
    return redirect("/skills")


def _serve_asset(request: PageRequest) -> ByteResponse:
    """A file that pages load; under the address with its digest it never changes."""
    found = load_assets().get("/".join(request.path_parts[1:]))
    if found is None:
        raise HttpError("not_found", "there is no such file")
    asked = f"{request.path}?v={request.query.get('v', '')}"
    caching = _IMMUTABLE_HEADER if asked == found.url else _NO_CACHE_HEADER
    return ByteResponse(200, ((b"content-type", found.content_type), caching), (found.data,))
